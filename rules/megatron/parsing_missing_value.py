"""An option stands without the value that it needs.

## What it does
Finds options at the end of a command, or before another option, that take a value. A variable that is never set
leaves its option bare.

## Why is this bad?
The parser exits with code 2 on every rank before anything else happens.

## Example
    pretrain_gpt.py --load --num-layers 24

Use instead:

    pretrain_gpt.py --load /checkpoints/run --num-layers 24

## Fix safety
Unsafe: the option is taken away, so that its default holds; an option that must be given has no fix.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:117, parse_args; core_v0.12.1 alike
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule
from preflight.rules.megatron.parsing_faults import UPSTREAM, finding, own_options, problems, removed
from preflight.source.finding import Kind


@rule(
    id="missing-value",
    kind=Kind.NO_VALUE,
    severity=Severity.ERROR,
    frameworks=("megatron",),
    upstream=(UPSTREAM,),
    noticed=True,
)
def check(job: Job) -> Iterator[Finding]:
    for problem in problems(job, "missing-value"):
        severity = own_options(job)
        yield finding(problem, removed(job, problem) if severity is None else None, severity)
