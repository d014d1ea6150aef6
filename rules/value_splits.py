"""A path with a blank in it is split into several words.

## What it does
Finds a path with a blank that is assigned in quotes and expanded without.

## Why is this bad?
The option gets the part before the blank; what follows is an unexpected argument, and the program ends with
"unrecognized arguments".

## Example
    DATA="/data/my corpus"
    torchrun pretrain_gpt.py --data-path $DATA
Use instead:
    DATA="/data/my corpus"
    torchrun pretrain_gpt.py --data-path "$DATA"

## References
GNU Bash Reference Manual, section 3.5.7, Word Splitting
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("value-splits")
