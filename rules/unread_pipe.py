"""A pipe leads into a command that reads no input.

## What it does
Finds pipes into `hostname`, `echo`, `date` and the like.

## Why is this bad?
What the command in front prints is lost, and the last one prints something else: the address of this machine, not
of the first node.

## Example
    MASTER_ADDR=$(head -n 1 hosts | hostname)

Use instead:

    MASTER_ADDR=$(head -n 1 hosts)

## References
hostname(1), echo(1): neither reads its standard input
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("unread-pipe")
