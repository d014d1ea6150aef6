"""Fixes chosen interactively, finding by finding: every fix is tried first, and shown as a diff."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from preflight.checking.checked_sources import Workspace
from preflight.checking.configured_checker import Suggest
from preflight.checking.engine import Report
from preflight.fix.author_intent import with_intentions
from preflight.fix.edited_texts import original, survives
from preflight.fix.fix_proof import proven
from preflight.fix.fixer import Fixed, Outcome, consequences
from preflight.fix.permitted_fixes import Inside
from preflight.source.finding import Finding, Fix, Safety
from preflight.source.record import NamedTuple, replace
from preflight.source.source_file import Position, Source

MOST = 200
"""Limit of findings that are asked about in one file."""


class Way(NamedTuple):
    """A proven fix: the resulting texts, the report on them, and the change to the training."""

    fix: Fix
    edited: dict[str, Source]
    report: Report
    changes: str


Ask = Callable[[Finding, Sequence[Way], dict[str, Source]], int | None]
"""Asks which fix to apply: its index, None for no fix. Raises StopIteration to stop asking."""


def fix_by_choice(
    workspace: Workspace, ask: Ask, *, inside: Inside | None = None, suggest: Suggest | None = None
) -> Fixed:
    """Ask about every finding that has a fix. Nothing is written; raises InputError if a file cannot be read."""
    result = Fixed(with_intentions(workspace, _suggested(workspace, workspace.check(), suggest)))
    seen: set[tuple[str, str, str, int]] = set()
    for _ in range(MOST):
        finding = next((f for f in result.report.findings if f.fix is not None and _name(f, result) not in seen), None)
        if finding is None:
            break
        seen.add(_name(finding, result))
        ways = list(_ways(workspace, result, finding, inside))
        try:
            chosen = ask(finding, ways, _now(workspace, result)) if ways else None
        except StopIteration:
            break
        if chosen is not None:
            _take(workspace, result, finding, ways[chosen], suggest)
    result.outcomes = [o for o in result.outcomes if o.finding.fix is None or survives(o.finding.fix, result.report)]
    return result


def _name(finding: Finding, result: Fixed) -> tuple[str, str, str, int]:
    """The finding that was asked about, at its line in the original text."""
    return finding.rule, finding.path, finding.message, _place(finding, result).line


def _place(finding: Finding, result: Fixed) -> Position:
    return original(finding.span.source.position(finding.span.start), finding.span.source, result.before)


def _now(workspace: Workspace, result: Fixed) -> dict[str, Source]:
    return {source.name: source for source in workspace.sources} | result.edited


def _suggested(workspace: Workspace, report: Report, suggest: Suggest | None) -> Report:
    return report if suggest is None else suggest(workspace, report)


def _ways(workspace: Workspace, result: Fixed, finding: Finding, inside: Inside | None) -> list[Way]:
    """The fixes that can be proven, in the order of the policy."""
    found = []
    for fix in (finding.fix, *finding.alternatives):
        if fix is None or fix.safety is Safety.SHOW:
            continue
        way = proven(workspace, result.report, [replace(finding, fix=fix)], result.edited)
        if isinstance(way, str) or (inside is not None and not all(map(inside, way.edited.values()))):
            continue
        pairs = zip(result.report.jobs, way.report.jobs, strict=False)
        changes = next(filter(None, (consequences(*pair) for pair in pairs)), "")
        found.append(Way(fix, way.edited, way.report, changes))
    return found


def _take(workspace: Workspace, result: Fixed, finding: Finding, way: Way, suggest: Suggest | None) -> None:
    """Apply a fix to the current state."""
    for name in way.edited:
        checked = (s for job in result.report.jobs for d in job.documents for s in (d.source, *d.also))
        old = next((s for s in checked if s.name == name), None)
        if old is not None:
            result.before.setdefault(name, old)
    detail = way.fix.title + (f"; {way.changes}" if way.changes else "")
    at = _place(finding, result)
    result.outcomes.append(Outcome(replace(finding, fix=way.fix), "fixed", detail, at))
    result.edited.update(way.edited)
    sources = [result.edited.get(source.name, source) for source in workspace.sources]
    edited = Workspace(sources, workspace.plugins, workspace.request, workspace.policy)
    result.report = _suggested(edited, way.report, suggest)
