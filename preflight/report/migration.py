"""What a move to another release changes, as text and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.checking.migration import Changed, Migration
from preflight.report.escapes import plain
from preflight.report.style import Look
from preflight.source.finding import Finding

COLORS = {"error": "red", "warning": "yellow"}


def migration_text(found: Migration, style: Look) -> str:
    """A heading, the places to change, the findings that go away, and the defaults that change."""
    name = found.before.documents[0].source.name
    head = style.paint(plain(f"{name}: {found.before.target} -> {found.after.target}"), "bold")
    return "".join(f"{line}\n" for line in (head, *_body(found, style)))


def _body(found: Migration, style: Look) -> Iterator[str]:
    for finding in found.new:
        yield from _finding(finding, style)
    for change in found.changed:
        if change.typed:
            yield plain(f"  {_place(change)}{change.option}: {change.before} becomes {change.after}")
    for finding in found.gone:
        yield plain(
            f"  {finding.path}:{finding.line}:{finding.column}: no longer found: {finding.message} [{finding.rule}]"
        )
    if defaults := [change for change in found.changed if not change.typed]:
        yield (
            f"  {len(defaults)} default{'s' * (len(defaults) > 1)} that this file does not set "
            f"change{'s' * (len(defaults) == 1)}:"
        )
        yield from (plain(f"    {change.option}: {change.before} becomes {change.after}") for change in defaults)
    if not found.new and not found.changed and not found.gone:
        yield "  nothing changes"


def _finding(finding: Finding, style: Look) -> Iterator[str]:
    severity = style.paint(str(finding.severity), COLORS.get(str(finding.severity), ""))
    yield (
        f"  {plain(f'{finding.path}:{finding.line}:{finding.column}')}: {severity}: "
        f"{plain(f'{finding.message} [{finding.rule}]')}"
    )
    if finding.fix is not None:
        yield plain(f"    fix: {finding.fix.title}")


def _place(change: Changed) -> str:
    setting = change.value.setting
    return f"{setting.span.path}:{setting.span.line}:{setting.span.column}: " if setting is not None else ""


def migration_dict(found: Migration) -> dict[str, Any]:
    """The same for programs."""
    return {
        "path": found.before.documents[0].source.name,
        "from": str(found.before.target),
        "to": str(found.after.target),
        "new": [_finding_dict(finding) for finding in found.new],
        "gone": [_finding_dict(finding) for finding in found.gone],
        "changed": [
            {"name": change.name, "before": _data(change.before), "after": _data(change.after), "typed": change.typed}
            for change in found.changed
        ],
    }


def _finding_dict(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": str(finding.severity),
        "message": str(finding.message),
        "path": finding.path,
        "line": finding.line,
        "column": finding.column,
        "fix": finding.fix.title if finding.fix is not None else None,
    }


def _data(value: object) -> object:
    return value if value is None or isinstance(value, (bool, int, float, str, list)) else str(value)
