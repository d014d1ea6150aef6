"""A launch uses a group of arguments that the script never defines.

## What it does
Finds `$MOE_ARGS` and the like in a launch command where no assignment to that name exists in the script or in the
scripts that it sources.

## Why is this bad?
bash expands it to nothing. The options that the author meant are off, and the run starts without a message about it.

## Example
    MOE_ARG="--num-experts 8"
    torchrun pretrain_gpt.py $GPT_ARGS $MOE_ARGS
Use instead:
    MOE_ARGS="--num-experts 8"
    torchrun pretrain_gpt.py $GPT_ARGS $MOE_ARGS

## References
GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("undefined-option-variable")
