"""A line that starts with an option runs as a separate command.

## What it does
Finds lines that begin with an option where the line above does not end in a backslash.

## Why is this bad?
The launch runs without these options, and bash reports "command not found" when it has ended.

## Example
    torchrun pretrain_gpt.py --num-layers 32
        --hidden-size 4096
Use instead:
    torchrun pretrain_gpt.py --num-layers 32 \\
        --hidden-size 4096

## References
GNU Bash Reference Manual, section 3.1.2.1, Escape Character
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("lost-options")
