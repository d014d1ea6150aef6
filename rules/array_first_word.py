"""A launch takes only the first word of an array of options.

## What it does
Finds arrays of options that a launch uses by their name alone, without `[@]`.

## Why is this bad?
To bash the name of an array without `[@]` is its first element: the other options are not passed on. What they
were meant to turn on is silently off, or an option is left without its value, which the parser refuses.

## Example
    MOE_ARGS=(--moe-grouped-gemm --num-experts 8)
    torchrun pretrain_gpt.py $MOE_ARGS
Use instead:
    MOE_ARGS=(--moe-grouped-gemm --num-experts 8)
    torchrun pretrain_gpt.py ${MOE_ARGS[@]}

## Fix safety
Unsafe: the run gets options that it lacked before.

## References
GNU Bash Reference Manual, section 6.7, Arrays
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("array-first-word")
