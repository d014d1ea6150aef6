"""The value of an option is a variable that the script does not set.

## What it does
Finds `--load $CHECKPOINT` where nothing in the script assigns `CHECKPOINT`.

## Why is this bad?
Unless the caller sets the variable, it expands to nothing: the option swallows the next one or ends the
program at once with "expected one argument".

## Example
    torchrun pretrain_gpt.py --load $CHECKPOINT
Use instead:
    CHECKPOINT=/models/base
    torchrun pretrain_gpt.py --load $CHECKPOINT

## References
GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule
from preflight.source.record import replace

MANY = 3
"""From so many on, the script is meant to be started with its settings in the environment."""


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    blank = {problem.keys[0] for d in job.documents for problem in d.problems if problem.kind == "blanks-at-equals"}
    found = [finding for finding in job.noticed("unset-variable") if finding.values["name"] not in blank]
    for finding in found:
        yield replace(finding, severity=Severity.NOTE) if len(found) >= MANY else finding
