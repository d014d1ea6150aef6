"""Applies fixes: edits → text, proven by reading and checking again, in rounds, written atomically."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Literal

from preflight.document import Document
from preflight.engine import Report
from preflight.finding import Edit, Finding, Fix, Safety, Severity
from preflight.loaders import load
from preflight.loaders.yaml_edit import CannotEdit, Splice, splice
from preflight.proof import prove
from preflight.record import NamedTuple
from preflight.refusal import NotProven
from preflight.source import InputError, Source
from preflight.workspace import Workspace

MAX_ROUNDS = 10
State = Literal["fixed", "no mechanical fix", "not proven", "needs --unsafe", "advice only"]


class Outcome(NamedTuple):
    """What became of one finding."""

    finding: Finding
    state: State
    detail: str = ""


@dataclass
class Fixed:
    """The new sources by name, those they replace, what became of each finding, and the report after the last round."""

    edited: dict[str, Source] = field(default_factory=dict)
    before: dict[str, Source] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    report: Report = field(default_factory=Report)


def fix(
    workspace: Workspace,
    *,
    unsafe: bool = False,
    wanted: Callable[[str, str], bool] = lambda rule, path: True,
    suggest: Callable[[Workspace, Report], Report] | None = None,
) -> Fixed:
    """Fix what can be fixed and proven. Nothing is written; raises InputError where a file cannot be read.

    wanted: whether findings of a rule on a path are to be fixed; the proof looks at all of them.
    suggest: puts fixes on findings that have none of their own; asked once the rules' own fixes are done, and again when one of its
    own is: each run of a file has its layout.
    """
    result = Fixed(report=workspace.check())
    refused: dict[tuple[str, ...], str] = {}
    asked: tuple[Finding, ...] | None = None
    for number in range(MAX_ROUNDS):
        pending = [f for f in result.report.findings if _applicable(f, unsafe) and wanted(f.rule, f.path) and _identity(f) not in refused]
        if pending and _round(workspace, result, pending, refused, unsafe):
            continue
        if suggest is None or result.report.findings == asked or number + 1 == MAX_ROUNDS:
            break
        suggested = suggest(_edited(workspace, result), result.report)
        if suggested.findings == result.report.findings:
            break
        result.report, asked = suggested, suggested.findings
        refused.clear()
    for finding in (f for f in result.report.findings if wanted(f.rule, f.path)):
        result.outcomes.append(_left(finding, refused.get(_identity(finding), ""), unsafe))
    return result


def _edited(workspace: Workspace, result: Fixed) -> Workspace:
    """The same workspace over the texts as they are now."""
    sources = [result.edited.get(source.name, source) for source in workspace.sources]
    return Workspace(sources, workspace.plugins, workspace.request, workspace.policy)


def _applicable(finding: Finding, unsafe: bool) -> bool:
    return finding.fix is not None and (finding.fix.safety is Safety.SAFE or (unsafe and finding.fix.safety is Safety.UNSAFE))


def _identity(finding: Finding) -> tuple[str, ...]:
    return (finding.rule, finding.path, *map(str, finding.key), finding.message)


def _left(finding: Finding, why: str, unsafe: bool) -> Outcome:
    if why:
        return Outcome(finding, "not proven", why)
    if finding.fix is None:
        return Outcome(finding, "no mechanical fix")
    if finding.fix.safety is Safety.SHOW:
        return Outcome(finding, "advice only", finding.fix.title)
    return Outcome(finding, "not proven" if unsafe else "needs --unsafe", finding.fix.title)


def _round(workspace: Workspace, result: Fixed, pending: Sequence[Finding], refused: dict[tuple[str, ...], str], unsafe: bool) -> bool:
    """Try all safe fixes that do not overlap at once; unsafe ones one by one, errors first. Whether anything changed."""
    safe = [f for f in pending if f.fix is not None and f.fix.safety is Safety.SAFE]
    if len(safe) > 1 and _try(workspace, result, safe, partial=True) is None:
        return True
    changed = False
    for finding in sorted(pending, key=lambda f: -(f.severity.rank if f.severity else 0)):
        current = next((f for f in result.report.findings if _identity(f) == _identity(finding) and f.fix is not None), None)
        if current is None:
            continue
        why = _one(workspace, result, current, unsafe)
        if why is None:
            changed = True
        else:
            refused[_identity(finding)] = why
    return changed


def _one(workspace: Workspace, result: Fixed, finding: Finding, unsafe: bool) -> str | None:
    """Apply the first of a finding's fixes that can be proven; None when one was, else why the first was not."""
    whys = []
    for candidate in (finding.fix, *finding.alternatives):
        chosen = replace(finding, fix=candidate)
        if _applicable(chosen, unsafe):
            why = _try(workspace, result, [chosen], partial=False)
            if why is None:
                return None
            whys.append(why)
    return whys[0] if whys else "there is only advice"


def _try(workspace: Workspace, result: Fixed, findings: Sequence[Finding], *, partial: bool) -> str | None:
    """Apply the fixes of findings; None when proven (result is updated), else why not."""
    sources = {source.name: source for source in workspace.sources} | result.edited
    try:
        edited, taken = apply(findings, result.report, sources, partial=partial)
        report = workspace.check({**result.edited, **edited})
        _better(result.report, report, taken)
    except (CannotEdit, NotProven, InputError) as error:
        return str(error)
    for old in (source for job in result.report.jobs for d in job.documents for source in (d.source, *d.also) if source.name in edited):
        result.before.setdefault(old.name, old)
    result.edited.update(edited)
    result.outcomes += [Outcome(f, "fixed", f.fix.title if f.fix else "") for f in taken]
    result.report = report
    return None


def apply(
    findings: Sequence[Finding], report: Report, sources: dict[str, Source], *, partial: bool = False, proven: bool = True
) -> tuple[dict[str, Source], list[Finding]]:
    """The edited sources of the fixes of findings, each proven by itself to change only what it means to.

    partial: leave out a fix that overlaps one taken before it or cannot be written; else raise CannotEdit or NotProven.
    proven: False where the texts are only looked at, and proven later if anybody wants them.
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
    edited = {}
    for name, part in planned.items():
        old = part[0][0].source
        new = Source(splice(old.text, part), name, path=old.path, bom=old.bom)
        if proven:
            prove(load(old), edits[name], new)
        edited[name] = new
    return edited, taken


def _file(edit: Edit, finding: Finding) -> str:
    return edit.span.source.name if edit.span is not None else finding.path


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


def _better(before: Report, after: Report, fixed: Sequence[Finding]) -> None:
    """Raises NotProven unless the fixed findings are gone and no error is new."""
    for finding in fixed:
        was = sum(f.rule == finding.rule and f.key == finding.key and f.message == finding.message for f in before.findings)
        now = sum(f.rule == finding.rule and f.key == finding.key and f.message == finding.message for f in after.findings)
        if now >= was:
            raise NotProven("the finding would still be there")
    seen = {job.documents[0].source.name for job in before.jobs if job.memory.verdict == "unknown"}  # a layout that can be read now may turn out too large
    had = Counter((f.rule, f.path) for f in before.findings if f.severity is Severity.ERROR)
    have = Counter((f.rule, f.path) for f in after.findings if f.severity is Severity.ERROR and not (f.rule == "predicted-oom" and f.path in seen))
    if new := have - had:
        raise NotProven(f"it would bring a new error: {', '.join(sorted(rule for rule, _ in new))}")
    if len(after.jobs) < len(before.jobs):
        raise NotProven("the file would no longer be recognised")


def text_edits(report: Report, finding: Finding, fix: Fix) -> dict[str, list[Splice]]:
    """The text changes of a fix by file, for reports; empty when it has no unambiguous place."""
    try:
        return _splices(finding, fix, _documents(report))
    except CannotEdit:
        return {}


def _documents(report: Report) -> dict[str, list[Document]]:
    """The documents of a report by file, each run once."""
    documents: dict[str, list[Document]] = {}
    for job in report.jobs:
        for document in job.documents:
            if all(d.run != document.run or d.source is not document.source for d in documents.get(document.source.name, [])):
                documents.setdefault(document.source.name, []).append(document)
    return documents
