"""A script is too involved to be followed to its end.

## What it does
Reports where following a script was cut off: enormous files, text that grows without bound, or
a manifest of more than a hundred launches.

## Why is this bad?
What the script does after that point was not checked.

## Example
    A="$A$A"; A="$A$A"; …
Use instead:
    A=plain

## References
GNU Bash Reference Manual, section 3.5, Shell Expansions
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.NOTE, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("script-not-followed")
