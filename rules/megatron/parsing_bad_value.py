"""A value that the option's type refuses.

## What it does
Reads each value as the parser does: whole numbers, numbers, patterns such as `[0]*1+[1]*3`.

## Why is this bad?
The parser exits with code 2 on every rank before anything else happens.

## Example
    pretrain_gpt.py --train-iters 50.0

Use instead:

    pretrain_gpt.py --train-iters 50

## Fix safety
Unsafe: only offered where the text means a whole number.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:117, parse_args; core_v0.12.1 alike
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule
from preflight.rules.megatron.parsing_faults import UPSTREAM, finding, own_options, problems, refused_value
from preflight.rules.megatron.replaced_options import replaced_value
from preflight.source.finding import Kind


@rule(
    id="bad-value",
    kind=Kind.OPTIONS,
    severity=Severity.ERROR,
    frameworks=("megatron",),
    upstream=(UPSTREAM,),
    noticed=True,
)
def check(job: Job) -> Iterator[Finding]:
    for problem in problems(job, "bad-value"):
        severity = own_options(job)
        fix = replaced_value(job, problem)
        yield finding(problem, fix, severity) if fix is not None else refused_value(job, problem, severity)
