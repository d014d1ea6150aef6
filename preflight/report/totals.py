"""What the text report says of files, apart from the files: small, plain, and to be added up."""

from __future__ import annotations

from collections.abc import Iterable

from preflight.source.finding import Severity
from preflight.source.record import NamedTuple


class Entry(NamedTuple):
    """One finding as it is printed; entries sort as findings do. against: the negative rank of the severity."""

    path: str
    start: int
    against: int
    rule: str
    message: str
    severity: str
    fix: str
    """How safe its fix is, "" without a fix."""

    text: str
    line: int = 0
    template: str = ""
    """The message without its values: entries with one template are alike."""

    about: str = ""
    """The value of the message that is called `text`."""


class Told(NamedTuple):
    """Everything that is printed about some files. problems: what could not be read, or crashed, for stderr."""

    entries: tuple[Entry, ...] = ()
    unverified: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why each of these was not verified."""

    targets: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    suppressed: int = 0
    problems: tuple[str, ...] = ()
    bounded: int = 0
    """Runs whose release only their options and keys tell."""

    unreadable: bool = False
    crashed: bool = False
    reads: tuple[str, ...] = ()
    """Of what the caller sets, the names that something reads."""

    programs: tuple[str, ...] = ()
    """The sources that runs are checked against."""

    @property
    def worst(self) -> Severity | None:
        """The highest severity of its findings."""
        return max(
            (Severity(name) for name in {entry.severity for entry in self.entries}),
            key=lambda severity: severity.rank,
            default=None,
        )


def added(parts: Iterable[Told]) -> Told:
    """What is told of all the files; entries in the order of findings."""
    columns = list(zip(*parts, strict=True))
    if not columns:
        return Told()
    entries, unverified, reasons, targets, details, checked, skipped = columns[:7]
    suppressed, problems, bounded, unreadable, crashed, reads, programs = columns[7:]

    def joined(column: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
        return tuple(text for texts in column for text in texts)

    ordered = tuple(sorted(entry for some in entries for entry in some))
    lists = joined(unverified), joined(reasons), joined(targets), joined(details), joined(checked), joined(skipped)
    names = tuple(dict.fromkeys(joined(reads)))
    once = tuple(dict.fromkeys(joined(problems)))  # settings that hold for many files
    ends = any(unreadable), any(crashed), names, joined(programs)
    return Told(ordered, *lists, sum(suppressed), once, sum(bounded), *ends)
