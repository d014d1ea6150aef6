"""Checks that a release brought which is newer than most that are in use:
certain only where somebody says the release, or none older is possible."""

from __future__ import annotations

from preflight.job import Job
from preflight.run.versions import numbers
from preflight.source.finding import Severity
from preflight.source.message import Message


def dated(job: Job, message: str, framework: str, since: str) -> tuple[str, Severity | None]:
    """What is said of a run, and the severity where it is not the rule's own.

    since: the first release that refuses it, "" for all of them; of another framework on top of this one as
    `mindspeed-llm@2.2`.
    """
    name, _, release = (since if "@" in since else f"{framework}@{since}").partition("@")
    certainty = job.arguments.certainty
    if not release or name not in job.versions or certainty.stated or certainty.has is not None:
        return message, None
    oldest = next(iter(certainty.releases), "") if name == job.target.framework else ""
    if oldest and numbers(oldest) >= numbers(release):
        return message, None
    taken = "{message}; {framework} before {release} takes it"
    return Message(taken, message=message, framework=name, release=release), Severity.WARNING
