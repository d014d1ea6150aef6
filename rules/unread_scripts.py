"""Checks for scripts, pipes and configs that are not read completely, and for restarts that do not resume."""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, Unverified, rule
from preflight.job import JUDGED
from preflight.source.finding import Kind


@rule(id="script-ends-early", severity=Severity.ERROR, noticed=True)
def script_ends_early(job: Job) -> Iterator[Finding]:
    """bash ends the script at a malformed condition, but exits with code 0.

    ## What it does
    Finds a `[[ ]]` that bash cannot parse, and a `for ((` or `((` without its `))`.

    ## Why is this bad?
    bash runs nothing from that command on, and exits with the code of the previous command, usually 0. For a malformed
    `[[ ]]` it prints a syntax error, but for a malformed `for ((` it prints nothing at all. `bash -n` accepts such a
    script, and the scheduler considers the job successful although the training never started.

    ## Example
        if [[ $RANK == 0 ]; then
            torchrun pretrain_gpt.py --num-layers 32
        fi
    Use instead:
        if [[ $RANK == 0 ]]; then
            torchrun pretrain_gpt.py --num-layers 32
        fi

    ## References
    GNU Bash Reference Manual, section 3.2.5, Compound Commands
    """
    yield from job.noticed("script-ends-early")


@rule(id="script-not-followed", severity=Severity.NOTE, noticed=True)
def script_not_followed(job: Job) -> Iterator[Finding]:
    """A script is too complex for preflight to follow to its end.

    ## What it does
    Reports where preflight stopped following a script: at an enormous file, at text that grows without bound, or in a
    manifest of more than a hundred launches.

    ## Why is this bad?
    Everything that the script does after that point is unchecked.

    ## Example
        A="$A$A"; A="$A$A"; …
    Use instead:
        A=plain

    ## References
    GNU Bash Reference Manual, section 3.5, Shell Expansions
    """
    yield from job.noticed("script-not-followed")


@rule(id="unread-pipe", severity=Severity.WARNING, noticed=True)
def unread_pipe(job: Job) -> Iterator[Finding]:
    """A pipe leads into a command that does not read its input.

    ## What it does
    Finds pipes into commands such as `hostname`, `echo` and `date`.

    ## Why is this bad?
    The output of the first command is lost, and the last command prints something else: in the example below, the name
    of this machine instead of the first node.

    ## Example
        MASTER_ADDR=$(head -n 1 hosts | hostname)

    Use instead:

        MASTER_ADDR=$(head -n 1 hosts)

    ## References
    hostname(1), echo(1): neither reads its standard input
    """
    yield from job.noticed("unread-pipe")


@rule(id="composition-refused", severity=Severity.ERROR, sometimes=(Severity.WARNING,), kind=Kind.OPTIONS, noticed=True)
def composition_refused(job: Job) -> Iterator[Finding]:
    """The program cannot compose its config from the given arguments.

    ## What it does
    Composes the config of a program that starts Megatron in the same way as the program, and reports what the program
    would reject: a word that is not an override, an option that a config group does not have, a `+` before a key that
    already exists, a key that the class of a section does not accept, an interpolation that cannot be resolved, or a
    value whose type differs from that of the field. The finding is an error, or a warning if another release accepts
    the config and the release is not stated.

    ## Why is this bad?
    The run fails before Ray gets its devices, after the job has waited in the queue.

    ## Example
        python3 -m verl.trainer.main_ppo +model_engine=megatron trainer.nnodes=1

    Use instead:

        python3 -m verl.trainer.main_ppo model_engine=megatron trainer.nnodes=1

    ## References
    verl v0.9.0, verl/trainer/main_ppo.py:167, hydra.main; Hydra 1.3, hydra/_internal/config_loader_impl.py
    """
    for problem in job.arguments.problems:
        if problem.kind == "composition-refused":
            severity = Severity.WARNING if problem.harmless else None
            yield Finding(problem.message, problem.span, related=(), severity=severity)


@rule(id="own-check", severity=Severity.ERROR, reads=(JUDGED,), beside=("device-count", "expert-grid"))
def own_check(job: Job) -> Iterator[Finding | Unverified]:
    """The program itself rejects the given arguments.

    ## What it does
    Reads the source of the program that the run starts, if it is available: its parser, its argument validation, and
    its configuration classes. The program is neither imported nor run. A certain rejection is reported in the program's
    own words, at the option that causes the rejection, unless another rule covers the same check with a better message. A
    rejection that depends on the machine is listed as not verified, together with the value that would decide it.

    ## Why is this bad?
    The run fails at startup, after the job has waited in the queue.

    ## Example
        # the checkout next to this script has, in validate_args: assert args.own_size % 2 == 0, "own size must be even"
        torchrun pretrain_gpt.py --own-size 3
    Use instead:
        torchrun pretrain_gpt.py --own-size 4

    ## Fix safety
    Unsafe: a fix is offered only if there is exactly one way to satisfy the check, and it may change the training run.

    ## References
    The file and the line refer to the program that was read; docs/program.md explains how it is found.
    """
    if job.judged is not None:
        yield from job.judged.said


@rule(id="tracker-misspelt", severity=Severity.WARNING, noticed=True)
def tracker_misspelt(job: Job) -> Iterator[Finding]:
    """A script looks for the last checkpoint in a file that Megatron-LM does not write.

    ## What it does
    Finds names such as `latest_checkpoint_iteration.txt`, which differ from `latest_checkpointed_iteration.txt`.

    ## Why is this bad?
    The test never succeeds, so a restarted job does not find its checkpoint and trains from the beginning.

    ## Example
        if [[ -f $SAVE/latest_checkpoint_iteration.txt ]]; then LOAD="--load $SAVE"; fi

    Use instead:

        if [[ -f $SAVE/latest_checkpointed_iteration.txt ]]; then LOAD="--load $SAVE"; fi

    ## Fix safety
    Unsafe: another program may write a file of that name.

    ## References
    Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, get_checkpoint_tracker_filename
    """
    yield from job.noticed("tracker-misspelt")


@rule(id="list-begun-again", severity=Severity.WARNING, noticed=True)
def list_begun_again(job: Job) -> Iterator[Finding]:
    """A variable that collects a list is assigned again, which discards the earlier entries.

    ## What it does
    Finds an assignment directly below one that adds to the same variable, if it does not contain the variable itself.

    ## Why is this bad?
    The datasets or options of the lines above are not used. Usually `$NAME` is missing at the beginning of the value.

    ## Example
        DATA="0.5 web_text_document"
        DATA="$DATA 0.3 code_text_document"
        DATA="0.2 books_text_document"

    Use instead:

        DATA="0.5 web_text_document"
        DATA="$DATA 0.3 code_text_document"
        DATA="$DATA 0.2 books_text_document"

    ## References
    GNU Bash Reference Manual, section 3.4, Shell Parameters
    """
    yield from job.noticed("list-begun-again")


@rule(id="resumed-without-state", severity=Severity.WARNING, noticed=True)
def resumed_without_state(job: Job) -> Iterator[Finding]:
    """A script finds its own checkpoint, but resumes without the optimizer state or the iteration.

    ## What it does
    Finds `--finetune` or `--no-load-optim` together with `--load` in the branch of a test that has found
    `latest_checkpointed_iteration.txt` in the same folder.

    ## Why is this bad?
    With `--finetune`, each restart begins at iteration 0 with a new optimizer. With `--no-load-optim`, Adam's averages
    start at zero again. The options belong to the branch that starts from other weights.

    ## Example
        if [[ -f $SAVE/latest_checkpointed_iteration.txt ]]; then
            LOAD_ARGS="--load $SAVE --finetune"
        fi

    Use instead:

        if [[ -f $SAVE/latest_checkpointed_iteration.txt ]]; then
            LOAD_ARGS="--load $SAVE"
        fi

    ## References
    Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, load_checkpoint: 0 with --finetune
    """
    yield from job.noticed("resumed-without-state")


@rule(id="resumed-elsewhere", severity=Severity.WARNING, noticed=True)
def resumed_elsewhere(job: Job) -> Iterator[Finding]:
    """A script looks for a checkpoint in one folder and loads it from another.

    ## What it does
    Compares the folder of `latest_checkpointed_iteration.txt` in a test with that of `--load` in the branch where the
    file was found, if the script sets both.

    ## Why is this bad?
    If the first folder has a checkpoint and the second has none, the run starts from random weights. In the opposite
    case, a restarted job does not find its own checkpoint.

    ## Example
        if [ -f "$BASE/latest_checkpointed_iteration.txt" ]; then LOAD="--load $OUT"; fi

    Use instead:

        if [ -f "$OUT/latest_checkpointed_iteration.txt" ]; then LOAD="--load $OUT"; fi

    ## References
    Megatron-LM core_v0.16.0, megatron/training/checkpointing.py, _load_base_checkpoint: will start from random
    """
    yield from job.noticed("resumed-elsewhere")
