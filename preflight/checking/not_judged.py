"""What a report has beside findings: rules that crashed, checks that could not be made, files that cannot be read."""

from __future__ import annotations

from preflight.source.record import NamedTuple


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
