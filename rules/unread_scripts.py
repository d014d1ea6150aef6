"""Scripts, pipes and configs that are not followed to the end."""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, Unverified, rule
from preflight.job import JUDGED
from preflight.source.finding import Kind


@rule(id="script-ends-early", severity=Severity.ERROR, noticed=True)
def script_ends_early(job: Job) -> Iterator[Finding]:
    """bash ends the script at a wrong condition, with the exit code of a success.

    ## What it does
    Finds a `[[ ]]` that bash cannot read, and a `for ((` or `((` without its `))`.

    ## Why is this bad?
    bash runs nothing from that command on, and ends with the exit code of the command before it, mostly 0: of a wrong
    `[[ ]]` it prints a syntax error, of a wrong `for ((` nothing at all. `bash -n` accepts such a script, the scheduler
    takes the job for a success, and the training has never begun.

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
    Reports where following a script was cut off: enormous files, text that grows without bound, or
    a manifest of more than a hundred launches.

    ## Why is this bad?
    What the script does after that point was not checked.

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
    Finds pipes into `hostname`, `echo`, `date` and the like.

    ## Why is this bad?
    What the command in front prints is lost, and the last one prints something else: the address of this machine, not
    of the first node.

    ## Example
        MASTER_ADDR=$(head -n 1 hosts | hostname)

    Use instead:

        MASTER_ADDR=$(head -n 1 hosts)

    ## References
    hostname(1), echo(1): neither reads its standard input
    """
    yield from job.noticed("unread-pipe")


@rule(id="composition-refused", severity=Severity.ERROR, kind=Kind.OPTIONS, noticed=True)
def composition_refused(job: Job) -> Iterator[Finding]:
    """The program cannot compose its config from this.

    ## What it does
    Composes the config of a program that starts Megatron as the program does, and reports what is refused on the way: a
    word that is not an override, a group without such an option, a `+` before a key that is there, a key that the class of
    a section does not take, an interpolation that leads nowhere, a value of another type than the field has. An error; a
    warning where another release takes it and the release is not stated.

    ## Why is this bad?
    The run dies before Ray has its devices, after the queue wait has been paid.

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
    """The program that runs refuses these arguments by its own check.

    ## What it does
    Reads the source of the program that the run starts, where it is available: its parser, its validation of arguments, its
    configuration classes. Nothing of it is imported or run. A certain refusal is reported in the program's own words, at
    the option that causes it, unless another rule covers the same check with a better message. A refusal that depends on
    the machine is listed as not verified, with the value that would decide it.

    ## Why is this bad?
    The run ends when it starts, after the queue wait has been paid.

    ## Example
        # the checkout next to this script has, in validate_args: assert args.own_size % 2 == 0, "own size must be even"
        torchrun pretrain_gpt.py --own-size 3
    Use instead:
        torchrun pretrain_gpt.py --own-size 4

    ## Fix safety
    Unsafe: a fix is offered where the check leaves only one, and it may change what is trained.

    ## References
    The file and the line are those of the program that was read; docs/program.md explains how it is found.
    """
    if job.judged is not None:
        yield from job.judged.said
