"""A script defines a group of arguments that no launch uses.

## What it does
Finds variables that hold options and are not expanded anywhere in the script.

## Why is this bad?
The options in it are never passed to the training command: what they were meant to turn on is silently off.

## Example
    MTP_ARGS="--mtp-num-layers 1"
    torchrun pretrain_gpt.py $GPT_ARGS
Use instead:
    MTP_ARGS="--mtp-num-layers 1"
    torchrun pretrain_gpt.py $GPT_ARGS $MTP_ARGS

## Fix safety
Unsafe: the options take effect. Only offered where no other option of the run is about the same: the group may be left
out on purpose.

## References
GNU Bash Reference Manual, section 3.5.3, Shell Parameter Expansion
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Severity, rule
from preflight.lint.certainty import topic
from preflight.source.record import replace


@rule(severity=Severity.WARNING, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    problems = [problem for document in job.documents for problem in document.problems]
    meant = {problem.fix[2] for problem in problems if problem.kind == "undefined-option-variable" and problem.fix}
    for finding in (f for f in job.noticed("unused-option-variable") if f.values["name"] not in meant):
        fix = finding.fix
        yield replace(finding, fix=fix._replace(offered=True)) if fix is not None and _may_be_off(fix, job) else finding


def _may_be_off(fix: Fix, job: Job) -> bool:
    """Whether nothing else of the run is about what the group holds: it may be left out on purpose."""
    names = {str(edit.key[-1]).strip("-").replace("-", "_") for edit in fix.edits if edit.key}
    return {topic(name) for name in names}.isdisjoint(map(topic, job.arguments.written))
