"""A value that is not among the option's choices.

## What it does
Compares a value with the choices of its option at the framework's version, letter case included. It is a warning where
the version asked for is not described: its choices may be others. The same applies where no target is stated and
earlier releases in use take the value, or the launch has options that no parser described here knows: a fork has
its own choices.

## Why is this bad?
The parser exits with code 2 on every rank before anything else happens.

## Example
    pretrain_gpt.py --normalization rmsnorm

Use instead:

    pretrain_gpt.py --normalization RMSNorm

## Fix safety
Unsafe: the nearest choice is a guess.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:117, parse_args; megatron/training/argument_utils.py:116 for enums
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule
from preflight.rules.megatron.parsing_faults import UPSTREAM, own_options, problems, refused_value
from preflight.source.finding import Kind


@rule(
    id="bad-choice",
    kind=Kind.OPTIONS,
    severity=Severity.ERROR,
    frameworks=("megatron",),
    upstream=(UPSTREAM,),
    noticed=True,
)
def check(job: Job) -> Iterator[Finding]:
    for problem in problems(job, "bad-choice"):
        unsaid = job.asked is not None or (problem.in_use and job.arguments.get("target_is_stated").raw is False)
        yield refused_value(job, problem, own_options(job) or (Severity.WARNING if unsaid else None))
