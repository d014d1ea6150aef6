"""msrun_launcher.sh is given a number of arguments that it does not take.

## What it does
Counts the arguments of MindFormers' `scripts/msrun_launcher.sh`: 1, 2, 6 or 9, of which the first is the whole command
in quotes and the second a plain number.

## Why is this bad?
The launcher prints its usage and exits 1. Most often the command was not put in quotes.

## Example
    bash scripts/msrun_launcher.sh run_mindformer.py --config run.yaml 8
Use instead:
    bash scripts/msrun_launcher.sh "run_mindformer.py --config run.yaml" 8

## References
MindFormers, scripts/msrun_launcher.sh
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("msrun-launcher-arguments")
