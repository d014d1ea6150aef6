"""Scripts, pipes and configs that are not read to the end."""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, Unverified, rule
from preflight.job import JUDGED
from preflight.source.finding import Kind


@rule(id="script-ends-early", severity=Severity.ERROR, noticed=True)
def script_ends_early(job: Job) -> Iterator[Finding]:
    """bash ends the script at a malformed condition, with the exit code for success.

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
    """A script is too involved to be followed to its end.

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
    """A pipe leads into a command that reads no input.

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
    """The program cannot compose its config from these arguments.

    ## What it does
    Composes the config of a program that starts Megatron in the same way as the program, and reports what the program
    would refuse: a word that is not an override, an option that a config group does not have, a `+` before a key that
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


@rule(id="own-check", severity=Severity.ERROR, reads=(JUDGED,))
def own_check(job: Job) -> Iterator[Finding | Unverified]:
    """The program itself refuses these arguments.

    ## What it does
    Reads the source of the program that the run starts, if it is available: its parser, its argument validation, and
    its configuration classes. The program is neither imported nor run. A certain refusal is reported in the program's
    own words, at the option that causes it, unless another rule covers the same check with a better message. A refusal
    that depends on the machine is listed as not verified, together with the value that would decide it.

    ## Why is this bad?
    The run fails at start-up, after the job has waited in the queue.

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
