"""Checks for what the program itself rejects: its composition of the config, and its own assertions."""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, Unverified, rule
from preflight.job import JUDGED
from preflight.source.finding import Kind

BESIDE = ("device-count", "expert-grid", "batch-not-divisible", "heads-not-divisible", "experts-not-divisible")
"""Rules about the layout that report the same refusal at the same option, with the sizes that do not fit."""


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


@rule(id="own-check", severity=Severity.ERROR, reads=(JUDGED,), beside=BESIDE)
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
