"""The release that was stated is not described, so the run is checked as another one.

## What it does
Reports that a program which starts Megatron was stated at a release whose sources preflight has not read, and as which
release the run is checked: the newest of the same minor release, else the newest before it, else the oldest.

## Why is this bad?
Each release of such a program adds, drops and checks other keys: the result is that of the release that is read.

## Example
    preflight check run.sh --target verl@0.5.0

Use instead:

    preflight check run.sh --target verl@0.6.1

## References
verl 0.9.1 takes 17 of 47 scripts that are published with 0.9.0: verl/trainer/config/engine/megatron.yaml
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule
from preflight.frontends.claims import FRONT_ENDS
from preflight.job import READ_AS_ANOTHER
from preflight.run.versions import numbers
from preflight.source.finding import Message

NAMES = frozenset(one.name for one in FRONT_ENDS)


@rule(severity=Severity.WARNING, reads=(READ_AS_ANOTHER,))
def check(job: Job) -> Iterator[Finding]:
    if job.asked is None or job.target.framework not in NAMES:
        return
    known = next(one.targets for one in FRONT_ENDS if one.name == job.target.framework)
    message = Message(
        "{asked} is not described; it is checked as {target}, and described are {releases:and}",
        asked=str(job.asked),
        target=str(job.target),
        releases=tuple(sorted((one.version for one in known), key=numbers)),
    )
    yield Finding(message, job.start)
