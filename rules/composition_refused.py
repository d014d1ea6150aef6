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

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule
from preflight.source.finding import Kind


@rule(severity=Severity.ERROR, kind=Kind.OPTIONS, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    for problem in job.arguments.problems:
        if problem.kind == "composition-refused":
            severity = Severity.WARNING if problem.harmless else None
            yield Finding(problem.message, problem.span, related=(), severity=severity)
