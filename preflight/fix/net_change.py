"""What a call has changed in the end, in the places of the text as it was."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.checking.engine import Report
from preflight.source.finding import Edit, Fix
from preflight.source.text import Position, Source


def survives(fix: Fix, report: Report) -> bool:
    """Whether anything of a fix is left in the report's texts: a later fix may have undone it."""
    return any(_survives(edit, report) for edit in fix.edits)


def _survives(edit: Edit, report: Report) -> bool:
    if edit.action not in ("set", "remove") or not edit.key or edit.span is not None:
        return True
    written = {
        value.key: value.raw
        for job in report.jobs
        if job.documents[0].run == edit.run
        for value in job.arguments.written.values()
    }
    if edit.action == "remove":
        return edit.key not in written
    return edit.key not in written or edit.value is None or _words(written[edit.key]) == _words(edit.value)


def _words(value: object) -> str:
    """A value as it is typed; the parser of an option may make a list of one word."""
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def original(place: Position, now: Source, before: Mapping[str, Source]) -> Position:
    """Where a place of an edited text stood in the text that the call began with."""
    old = before.get(now.name)
    if old is None or old.text == now.text:
        return place
    from difflib import SequenceMatcher

    ours, theirs = old.text.splitlines(), now.text.splitlines()
    line = place.line - 1
    for tag, i, last, j, end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if j <= line < end:
            if tag == "equal":
                return Position(i + line - j + 1, place.column)
            return Position(min(i + line - j + 1, max(i + 1, last), len(ours)), 1)
    return place
