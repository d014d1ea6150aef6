"""Faults that a rule function finds in newer releases only: certain where somebody says the release, or none older is
possible."""

from __future__ import annotations

from preflight.job import Job
from preflight.run.versions import numbers
from preflight.source.finding import Severity
from preflight.source.message import Message


def dated(job: Job, message: str, framework: str, since: str) -> tuple[str, Severity | None]:
    """What is said of a run, and the severity where it is not the rule's own.

    since: the first release that refuses it, "" for all of them.
    """
    certainty = job.arguments.certainty
    if not since or framework not in job.versions or certainty.stated or certainty.has is not None:
        return message, None
    oldest = next(iter(certainty.releases), "") if framework == job.target.framework else ""
    if oldest and numbers(oldest) >= numbers(since):
        return message, None
    taken = "{message}; {framework} before {since} accepts it"
    return Message(taken, message=message, framework=framework, since=since), Severity.WARNING
