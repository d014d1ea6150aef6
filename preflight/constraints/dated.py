"""Checks that a release brought which is newer than most that are in use: certain only where somebody says the release."""

from __future__ import annotations

from preflight.finding import Severity
from preflight.job import Job


def dated(job: Job, message: str, framework: str, since: str) -> tuple[str, Severity | None]:
    """What is said of a run, and the severity where it is not the rule's own. since: the first release that refuses it, "" for all of them."""
    if not since or job.arguments.get("target_is_stated").raw is not False:
        return message, None
    return f"{message}; {framework} before {since} takes it", Severity.WARNING
