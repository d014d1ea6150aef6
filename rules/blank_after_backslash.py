"""Trailing blanks after a line-continuation backslash.

## What it does
Finds a backslash at the end of a line of a command, or of an array of arguments, with blanks behind it.

## Why is this bad?
The backslash makes the blank a word instead of continuing the line. The command ends there: every option on the lines
below is dropped, and the next line is run as a command that does not exist.

## Example
    torchrun pretrain_gpt.py --num-layers 32 \\ 
        --hidden-size 4096
Use instead:
    torchrun pretrain_gpt.py --num-layers 32 \\
        --hidden-size 4096

## Fix safety
Safe: only the blanks are deleted, which are never intended.

## References
GNU Bash Reference Manual, section 3.1.2.1, Escape Character
"""

from collections.abc import Iterator

from preflight import Finding, Job, Safety, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("blank-after-backslash", Safety.SAFE)
