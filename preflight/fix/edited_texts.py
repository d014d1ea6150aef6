"""The texts that result from fixes: edits of settings become splices of text, and the final differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module

from preflight.checking.engine import Report
from preflight.fix.edit_integrity import prove
from preflight.loaders import load
from preflight.loaders.document import Document
from preflight.source.finding import Edit, Finding, Fix
from preflight.source.record import NamedTuple
from preflight.source.source_file import CannotEdit, Position, Source, Splice, splice

Sources = dict[str, Source]


class Applied(NamedTuple):
    """The result of fixes on files. documents: those of the edited sources by name, if they are proven."""

    sources: Sources
    taken: list[Finding]
    documents: dict[str, tuple[Document, ...]]


def apply(
    findings: Sequence[Finding], report: Report, sources: Sources, *, partial: bool = False, proven: bool = True
) -> Applied:
    """The edited sources of the fixes of findings, each individually proven to change only what it intends. partial:
    skip a fix that overlaps an earlier one or cannot be written; otherwise raise CannotEdit or NotProven. proven: False
    if the texts are only displayed and are proven later when used.
    """
    documents = _documents(report)
    planned: dict[str, list[Splice]] = {}
    edits: dict[str, list[Edit]] = {}
    taken = []
    for finding in findings:
        assert finding.fix is not None
        try:
            wanted = _splices(finding, finding.fix, documents)
        except CannotEdit:
            if not partial:
                raise
            continue
        if any(_overlap(s, t) for name, part in wanted.items() for s in part for t in planned.get(name, [])):
            if not partial:
                raise CannotEdit("its edits overlap each other")
            continue
        taken.append(finding)
        for name, part in wanted.items():
            planned.setdefault(name, []).extend(part)
            edits.setdefault(name, []).extend(e for e in finding.fix.edits if _file(e, finding) == name)
    if not planned:
        raise CannotEdit("nothing can be edited")
    found = Applied({}, taken, {})
    for name, part in planned.items():
        old = part[0][0].source
        new = old.changed(splice(old.text, part))
        if proven:
            found.documents[name] = prove(_before(old), edits[name], new)
        found.sources[name] = new
    return found


@lru_cache(maxsize=4)
def _before(source: Source) -> tuple[Document, ...]:
    """The documents of a text on which several fixes are tried."""
    return load(source)


def edited_source(edit: Edit, finding: Finding) -> Source:
    """The file that an edit of a finding's fix changes."""
    return edit.span.source if edit.span is not None else finding.span.source


def _file(edit: Edit, finding: Finding) -> str:
    return edited_source(edit, finding).name


def _splices(finding: Finding, fix: Fix, documents: dict[str, list[Document]]) -> dict[str, list[Splice]]:
    """The text changes of a fix by file. Raises CannotEdit."""
    by_document: dict[tuple[str, int], list[Edit]] = {}
    for edit in fix.edits:
        by_document.setdefault((_file(edit, finding), edit.run), []).append(edit)
    found: dict[str, list[Splice]] = {}
    for (name, run), edits in by_document.items():
        document = next((d for d in documents.get(name, []) if d.run == run or d.kind == "yaml"), None)
        if document is None:
            raise CannotEdit("there is no file to write it to")
        editor = "shell" if document.kind == "script" else document.kind
        changes: list[Splice] = import_module(f"preflight.loaders.{editor}_edit").splices(document, tuple(edits))
        found.setdefault(name, []).extend(changes)
    return found


def _overlap(one: Splice, other: Splice) -> bool:
    a, b = one[0], other[0]
    if a.start == a.end and b.start == b.end:
        return False
    return (a.start < b.end and b.start < a.end) or a.start == b.start


def text_edits(report: Report, finding: Finding, fix: Fix) -> dict[str, list[Splice]]:
    """The text changes of a fix by file, for reports, without those that change nothing; empty if its place is
    ambiguous.
    """
    try:
        splices = _splices(finding, fix, _documents(report))
    except CannotEdit:
        return {}
    return {name: [(span, new) for span, new in part if new or span.text] for name, part in splices.items()}


def _documents(report: Report) -> dict[str, list[Document]]:
    """The documents of a report by file, each run once."""
    documents: dict[str, list[Document]] = {}
    for job in report.jobs:
        for document in job.documents:
            known = documents.setdefault(document.source.name, [])
            if all(d.run != document.run or d.source is not document.source for d in known):
                known.append(document)
    return documents


def survives(fix: Fix, report: Report) -> bool:
    """Whether any part of a fix remains in the report's texts: a later fix may have undone it."""
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
    """A value as written; the parser of an option may turn one word into a list."""
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def original(place: Position, now: Source, before: Mapping[str, Source]) -> Position:
    """The position in the original text of a place in the edited text."""
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
