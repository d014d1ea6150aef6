"""An assignment has a blank at its equals sign.

## What it does
Finds `NNODES = 2`, `NNODES= 2` and `export NNODES = 2` in a script that reads `NNODES` and sets it nowhere else.

## Why is this bad?
Bash takes `NNODES`, or `2`, for a command, reports "command not found" and goes on: the variable is empty, and the
option that takes it swallows the next word or gets no value. `export` takes `=` and `2` for names that are not valid.

## Example
    NNODES = 2
    torchrun --nnodes $NNODES --nproc-per-node 8 pretrain_gpt.py --num-layers 24

Use instead:

    NNODES=2
    torchrun --nnodes $NNODES --nproc-per-node 8 pretrain_gpt.py --num-layers 24

## Fix safety
Unsafe: the variable has a value again.

## References
GNU Bash Reference Manual, section 3.4, Shell Parameters
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("blanks-at-equals")
