"""msrun_launcher.sh is started with one worker, and does nothing.

## What it does
Finds `msrun_launcher.sh` with a worker number of 1.

## Why is this bad?
The launcher prints a hint to run the script without it and exits 0: the job ends at once and looks as if it had
succeeded.

## Example
    bash scripts/msrun_launcher.sh "run_mindformer.py --config run.yaml" 1
Use instead:
    python run_mindformer.py --config run.yaml

## References
MindFormers, scripts/msrun_launcher.sh
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("msrun-launcher-single-worker")
