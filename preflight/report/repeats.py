"""Warnings and notes that repeat: the first of them in full, the others counted, so that a tree stays readable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from preflight.report.escapes import plain
from preflight.report.totals import Entry

SHOWN = 3
"""So many alike are printed one by one; of more, the first is, and the others are counted."""
PLACES = {"warning": 20, "note": 3}
"""So many of those that are only counted are named, by severity."""
ONE_LINE = "placeholder-value"
"""The rule whose findings in a file are one line: which values they are says all."""


def texts(entries: Sequence[Entry]) -> Iterator[str]:
    """What is printed of entries. Errors are never left out."""
    lines = list(_one_line_a_file(entries))
    counts = Counter(map(_kind, lines))
    told = set[tuple[str, str, str]]()
    for entry in lines:
        kind = _kind(entry)
        if entry.severity == "error" or counts[kind] <= SHOWN:
            yield entry.text
        elif kind not in told:
            told.add(kind)
            yield f"{entry.text.rstrip()}\n{_others([other for other in lines if _kind(other) == kind][1:])}"


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
    return f"  and {len(others)} more like this{where} (--no-group shows them):{listed}\n"


def _one_line_a_file(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries; of a file's placeholders one, which lists them in its first line."""
    for _, group in groupby(entries, key=lambda entry: entry.path):
        found = list(group)
        alike = [entry for entry in found if entry.rule == ONE_LINE and entry.severity != "error"]
        if len(alike) < 2:
            yield from found
            continue
        listed = ", ".join(f"{entry.about} (line {entry.line})" for entry in alike)
        head = alike[0].text.partition("\n")[0]
        line = head.replace(plain(alike[0].message), f"{len(alike)} placeholders are not filled in: {listed}")
        first, others = id(alike[0]), {id(entry) for entry in alike[1:]}
        for entry in found:
            if id(entry) not in others:
                yield entry._replace(text=f"{line}\n") if id(entry) == first else entry
