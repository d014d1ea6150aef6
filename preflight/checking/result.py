"""What a check of documents gives: findings, what could not be verified or read, and the runs."""

from __future__ import annotations

from preflight.job import Job
from preflight.lint.rule import Checkable
from preflight.run.plan import Plan
from preflight.source.finding import Finding, Kind, Severity
from preflight.source.record import NamedTuple, dataclass


class Crash(NamedTuple):
    """A rule that failed; never hidden, never a finding."""

    rule: str
    path: str
    error: str
    trace: str


class Unchecked(NamedTuple):
    """Something a rule could not verify on a file."""

    rule: str
    path: str
    because: str


class Unreadable(NamedTuple):
    """A file that could not be read as what it is; line and column are 0 when no place is known."""

    path: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return ":".join([*(str(part) for part in self[:3] if part), f" {self.message}"])


@dataclass(frozen=True)
class Report:
    """What was found. skipped: files that no dialect claims. unknown: what could not be verified. errors: files that
    cannot be read.

    looked: other files that were opened, or looked for in vain: what is in them is part of the report.
    """

    findings: tuple[Finding, ...] = ()
    jobs: tuple[Job, ...] = ()
    unknown: tuple[Unchecked, ...] = ()
    crashes: tuple[Crash, ...] = ()
    skipped: tuple[str, ...] = ()
    suppressed: int = 0
    checked: tuple[str, ...] = ()
    errors: tuple[Unreadable, ...] = ()
    looked: tuple[str, ...] = ()
    rules: tuple[Checkable, ...] = ()
    """The rules that made the findings, sorted by id."""

    @property
    def plan(self) -> Plan | None:
        """The plan of the first run, None when nothing was read."""
        return self.jobs[0].plan if self.jobs else None

    @property
    def accepted(self) -> bool:
        """All is read, and no error but a predicted out-of-memory, which `fits` tells."""
        return not self.errors and not any(
            f.severity is Severity.ERROR and f.kind is not Kind.MEMORY for f in self.findings
        )

    @property
    def fits(self) -> bool:
        """All is read, and no run is predicted not to fit in memory."""
        return not self.errors and not any(
            f.severity is Severity.ERROR and f.kind is Kind.MEMORY for f in self.findings
        )
