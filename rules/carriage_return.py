"""The lines of a script end in CRLF.

## What it does
Finds carriage returns at the ends of lines, where they change what is run: in a comment they do nothing, nor on an
empty line of a script that goes on after a command that fails.

## Why is this bad?
bash takes the carriage return for a part of the last word: `\\` no longer continues a line, numbers are not numbers,
and commands are not found.

## Example
    torchrun pretrain_gpt.py \\<CR>
        --num-layers 32<CR>
Use instead:
    torchrun pretrain_gpt.py \\
        --num-layers 32

## Fix safety
Safe: only carriage returns at the ends of lines are deleted.

## References
GNU Bash Reference Manual, section 3.1.2, Quoting
"""

from collections.abc import Iterator

from preflight import Finding, Job, Safety, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("carriage-return", Safety.SAFE)
