"""Warnings and notes that repeat: the first of them in full, the others counted, so that a tree stays readable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from preflight.report.escapes import plain
from preflight.report.totals import Entry
from preflight.source.language import local

SHOWN = 3
"""So many alike are printed one by one; of more, the first is, and the others are counted."""
PLACES = {"warning": 20, "note": 3}
"""So many of those that are only counted are named, by severity."""
ONE_LINE = "placeholder-value"
"""The rule whose notes are one line: their message says all."""


def texts(entries: Sequence[Entry]) -> Iterator[str]:
    """What is printed of entries. Errors are never left out."""
    lines = list(map(_one_line, _once(entries)))
    counts = Counter(map(_kind, lines))
    told = set[tuple[str, str, str]]()
    for entry in lines:
        kind = _kind(entry)
        if entry.severity == "error" or counts[kind] <= SHOWN:
            yield entry.text
        elif kind not in told:
            told.add(kind)
            yield f"{entry.text.rstrip()}\n{_others([other for other in lines if _kind(other) == kind][1:])}"


def _once(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Entries that read the same, as of a file that several launches read, printed once, with how many there are."""
    many = Counter(entry.text for entry in entries)
    for text, entry in {entry.text: entry for entry in entries}.items():
        others = many[text] - 1
        more = f"  {local(f'and {others} more at the same place, of other runs (--no-group shows them)')}\n"
        yield entry if many[text] == 1 else entry._replace(text=f"{text}{more}")


def _kind(entry: Entry) -> tuple[str, str, str]:
    return entry.rule, entry.severity, ONE_LINE if entry.rule == ONE_LINE else entry.template


def _others(others: Sequence[Entry]) -> str:
    """One line about the entries that are not printed."""
    most = PLACES[others[0].severity]
    named = [plain(f"{entry.path}:{entry.line}") for entry in others[:most]]
    if len(others) > most:
        named.append("…")
    files = len({entry.path for entry in others})
    where = f" in {files} files" if files > 1 else ""
    listed = "".join(f"\n    {place}" for place in named)
    number = len(others)
    return f"  {local(f'and {number} more like this{where} (--no-group shows them):')}{listed}\n"


def _one_line(entry: Entry) -> Entry:
    """The entry; of a note about placeholders its first line, which needs no excerpt."""
    if entry.rule != ONE_LINE or entry.severity == "error":
        return entry
    head = entry.text.partition("\n")[0]
    return entry._replace(text=f"{head}\n")
