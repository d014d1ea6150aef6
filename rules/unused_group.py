"""A script defines a group of arguments that no launch uses.

## What it does
Finds variables that hold options and are not expanded anywhere in the script.

## Why is this bad?
The options in it are never passed to the training command: what they were meant to turn on is silently off.

## Example
    MTP_ARGS="--mtp-num-layers 1"
    torchrun pretrain_gpt.py $GPT_ARGS
Use instead:
    MTP_ARGS="--mtp-num-layers 1"
    torchrun pretrain_gpt.py $GPT_ARGS $MTP_ARGS

## References
GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("unused-group")
