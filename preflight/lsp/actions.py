"""The ways out of a finding as code actions, and all safe fixes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lsprotocol import types

from preflight.fix.apply import text_edits
from preflight.fix.fixer import fix
from preflight.fix.offers import proven_offers
from preflight.loaders.yaml_edit import Splice
from preflight.lsp.buffers import Buffer
from preflight.lsp.diagnostics import diagnostic
from preflight.lsp.places import exactly, range_of, uri_of
from preflight.source.finding import Finding, Fix, Safety
from preflight.source.language import local

ALL = types.CodeActionKind.SourceFixAll


def actions(buffer: Buffer, uri: str, at: types.Range, only: Iterable[str] | None) -> list[types.CodeAction]:
    """What can be done at a range: each way out of the findings there; and the safe fixes of the whole file.

    only: the kinds of action that the editor asks for; None for all.
    """
    wanted = None if only is None else tuple(only)
    found: list[types.CodeAction] = []
    if _asked(types.CodeActionKind.QuickFix, wanted):
        here = [
            finding
            for finding in buffer.report.findings
            if finding.path == buffer.source.name and _meet(range_of(finding.span), at)
        ]
        for finding in proven_offers(buffer.workspace, buffer.report, here):
            found += _ways(finding, buffer)
    if _asked(ALL, wanted) and (every := fix_all(buffer, uri)) is not None:
        found.append(every)
    return found


def _asked(kind: str, wanted: tuple[str, ...] | None) -> bool:
    return wanted is None or any(kind == one or kind.startswith(f"{one}.") for one in wanted)


def _meet(one: types.Range, other: types.Range) -> bool:
    first, second = (one.start.line, one.start.character), (one.end.line, one.end.character)
    start, end = (other.start.line, other.start.character), (other.end.line, other.end.character)
    return first <= end and start <= second


def _ways(finding: Finding, buffer: Buffer) -> Iterator[types.CodeAction]:
    """The fix, then the alternatives; none that is only advice, or that has no clear place in the text."""
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
            if uri := uri_of(span.source):
                changes.setdefault(uri, []).append(types.TextEdit(exactly(span), new))
    return types.WorkspaceEdit(changes=dict(changes)) if changes else None


def fix_all(buffer: Buffer, uri: str) -> types.CodeAction | None:
    """All safe fixes of a file, proven as `preflight fix` proves them; None where there are none."""
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
    """The lines that differ, so that the cursor and the folds of the rest stay."""
    from difflib import SequenceMatcher

    source = buffer.source
    old, lines = source.text.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    for tag, one, two, three, four in SequenceMatcher(None, old, lines, autojunk=False).get_opcodes():
        if tag != "equal":
            yield source.span(starts[one], starts[two]), "".join(lines[three:four])
