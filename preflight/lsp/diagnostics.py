"""Findings as diagnostics, and their fixes as code actions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lsprotocol import types

from preflight.checking.engine import Report
from preflight.fix.edited_texts import text_edits
from preflight.fix.fixer import fix
from preflight.fix.proven_fixes import proven_offers
from preflight.lsp.buffers import Buffer
from preflight.lsp.hover_and_links import address
from preflight.lsp.positions import exactly, position_of, range_of, uri_of
from preflight.source.finding import Finding, Fix, Safety, Severity
from preflight.source.source_file import Splice
from preflight.source.translation import local

SOURCE = "preflight"
"""The name under which an editor lists the diagnostics."""

SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


def diagnostics(buffer: Buffer) -> list[types.Diagnostic]:
    """The findings of a file, and why it cannot be read. Findings in other files are reported at its start."""
    found = [diagnostic(finding, buffer) for finding in buffer.report.findings]
    if buffer.report.errors:
        found += _kept(buffer)
    return [*found, *_unreadable(buffer.report, buffer)]


def _kept(buffer: Buffer) -> Iterator[types.Diagnostic]:
    """The findings of the last text that could be parsed, at their present lines; none for changed lines."""
    own = [finding for finding in buffer.parsed.findings if finding.path == buffer.source.name]
    if not own:
        return
    moved = _moved(own[0].span.source.text.splitlines(), buffer.source.text.splitlines())
    for finding in own:
        told = diagnostic(finding, buffer)
        at = told.range
        if at.start.line in moved and at.end.line in moved:
            told.range = types.Range(
                types.Position(moved[at.start.line], at.start.character),
                types.Position(moved[at.end.line], at.end.character),
            )
            yield told


def _moved(old: list[str], new: list[str]) -> dict[int, int]:
    """The mapping of each line of a text to another text that differs in one stretch."""
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    rest = min(len(old), len(new)) - same
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    moved = {line: line for line in range(same)}
    moved.update({len(old) - 1 - i: len(new) - 1 - i for i in range(tail)})
    return moved


def diagnostic(finding: Finding, buffer: Buffer) -> types.Diagnostic:
    """One finding at its place, with the related places."""
    own = finding.path == buffer.source.name
    where = "" if own else f"{finding.path}:{finding.line}: "
    related = [
        types.DiagnosticRelatedInformation(types.Location(uri, range_of(one.span)), local(one.label or "involved"))
        for one in finding.related
        if (uri := uri_of(one.span.source))
    ]
    return types.Diagnostic(
        range=range_of(finding.span) if own else types.Range(types.Position(0, 0), types.Position(0, 1)),
        message=f"{where}{local(finding.message)}",
        severity=SEVERITIES[finding.severity or Severity.NOTE],
        code=finding.rule,
        code_description=types.CodeDescription(page) if (page := address(finding.rule or "")) else None,
        source=SOURCE,
        related_information=related or None,
    )


def _unreadable(report: Report, buffer: Buffer) -> list[types.Diagnostic]:
    found = []
    for error in report.errors:
        source = buffer.source
        line = min(max(error.line, 1), len(source.starts))
        start = min(source.offset(line) + max(error.column - 1, 0), len(source.text))
        if slip := SLIP.search(error.message):
            line = min(int(slip[1]), len(source.starts))
            start = source.offset(line) + len(source.line(line).rstrip()) - 1
        at = position_of(source, start)
        place = types.Range(at, types.Position(at.line, at.character + 1))
        severity = types.DiagnosticSeverity.Error
        found.append(types.Diagnostic(range=place, message=local(error.message), severity=severity, source=SOURCE))
    return found


SLIP = re.compile(r"on line (\d+)\)$")
"""The line of the mistake, if a message names another one than the parser."""
ALL = types.CodeActionKind.SourceFixAll
SUPPRESS, EXPLAIN = "preflight.suppress", "preflight.explain"
"""Server commands behind actions."""


def actions(buffer: Buffer, uri: str, at: Sequence[types.Range], only: Iterable[str] | None) -> list[types.CodeAction]:
    """The actions for ranges: each fix of the findings there, and the safe fixes of the whole file. at: the range of
    the cursor, and those of the diagnostics that the editor names: it may name those of the whole line. only: the
    kinds of action that the editor requests; None for all.
    """
    wanted = None if only is None else tuple(only)
    found: list[types.CodeAction] = []
    if _asked(types.CodeActionKind.QuickFix, wanted):
        here = [
            finding
            for finding in buffer.report.findings
            if finding.path == buffer.source.name and any(_meet(range_of(finding.span), one) for one in at)
        ]
        for finding in proven_offers(buffer.workspace, buffer.report, here):
            found += _ways(finding, buffer)
        for finding in here:
            found += _about(finding, buffer)
    if _asked(ALL, wanted) and (every := fix_all(buffer, uri)) is not None:
        found.append(every)
    return found


def _about(finding: Finding, buffer: Buffer) -> Iterator[types.CodeAction]:
    """Suppress a finding, or read the page of its rule."""
    rule, told = finding.rule or "", diagnostic(finding, buffer)
    kind = types.CodeActionKind.QuickFix
    arguments = [buffer.uri, rule, finding.line]
    if rule not in ALWAYS:
        title = f"Suppress {rule} here, with a reason"
        command = types.Command(title, SUPPRESS, arguments=arguments)
        yield types.CodeAction(title, kind=kind, diagnostics=[told], command=command)
    title = f"Explain {rule}"
    yield types.CodeAction(
        title, kind=kind, diagnostics=[told], command=types.Command(title, EXPLAIN, arguments=[rule])
    )


ALWAYS = ("unused-suppression", "shell-syntax", "unreadable")
"""Rules that a suppression cannot turn off."""


def _asked(kind: str, wanted: tuple[str, ...] | None) -> bool:
    return wanted is None or any(kind == one or kind.startswith(f"{one}.") for one in wanted)


def _meet(one: types.Range, other: types.Range) -> bool:
    first, second = (one.start.line, one.start.character), (one.end.line, one.end.character)
    start, end = (other.start.line, other.start.character), (other.end.line, other.end.character)
    return first <= end and start <= second


def _ways(finding: Finding, buffer: Buffer) -> Iterator[types.CodeAction]:
    """The fix, then the alternatives; without pure advice, and without fixes that have no clear place in the text."""
    told = diagnostic(finding, buffer)
    ways = [way for way in (finding.fix, *finding.alternatives) if way is not None and way.safety is not Safety.SHOW]
    for number, way in enumerate(ways):
        edit = _edit(finding, way, buffer)
        if edit is not None:
            preferred = number == 0 and way.safety is Safety.SAFE and not way.offered
            said = local(way.title)
            title = said[:1].upper() + said[1:]
            kind = types.CodeActionKind.QuickFix
            yield types.CodeAction(title, kind=kind, diagnostics=[told], edit=edit, is_preferred=preferred)


def _edit(finding: Finding, way: Fix, buffer: Buffer) -> types.WorkspaceEdit | None:
    changes: dict[str, list[types.TextEdit]] = {}
    for splices in text_edits(buffer.report, finding, way).values():
        for span, new in splices:
            if uri := buffer.uri if span.source.name == buffer.source.name else uri_of(span.source):
                changes.setdefault(uri, []).append(types.TextEdit(exactly(span), new))
    return types.WorkspaceEdit(changes=dict(changes)) if changes else None


def fix_all(buffer: Buffer, uri: str) -> types.CodeAction | None:
    """All safe fixes of a file, proven as in `preflight fix`; None if there are none."""
    if not any(one.fix is not None and one.fix.safety is Safety.SAFE for one in buffer.report.findings):
        return None
    fixed = fix(buffer.workspace, inside=lambda source: source.path == buffer.source.path, notes=lambda rule: False)
    new = fixed.edited.get(buffer.source.name)
    if new is None or new.text == buffer.source.text:
        return None
    edits = [types.TextEdit(exactly(span), text) for span, text in _changed(buffer, new.text)]
    edit = types.WorkspaceEdit(changes={uri: edits})
    return types.CodeAction("Fix all that preflight can fix safely", kind=ALL, edit=edit)


def _changed(buffer: Buffer, new: str) -> Iterator[Splice]:
    """The differing lines, so that the cursor and the folds elsewhere stay."""
    from difflib import SequenceMatcher

    source = buffer.source
    old, lines = source.text.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    for tag, one, two, three, four in SequenceMatcher(None, old, lines, autojunk=False).get_opcodes():
        if tag != "equal":
            yield source.span(starts[one], starts[two]), "".join(lines[three:four])
