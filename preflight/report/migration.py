"""What a move to another release changes, as text and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.checking.migration import Changed, Migration
from preflight.report.escapes import plain
from preflight.report.style import Look
from preflight.source.finding import Finding
from preflight.source.language import local
from preflight.source.message import Message

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
            yield plain(f"  {_place(change)}{_change(change)}")
    for finding in found.gone:
        gone = local(Message("no longer found: {message}", message=finding.message))
        yield plain(f"  {finding.path}:{finding.line}:{finding.column}: {gone} [{finding.rule}]")
    if defaults := [change for change in found.changed if not change.typed]:
        many = Message.plural(
            len(defaults),
            "{number} default that this file does not set changes:",
            "{number} defaults that this file does not set change:",
            number=len(defaults),
        )
        yield f"  {local(many)}"
        yield from (plain(f"    {_change(change)}") for change in defaults)
    if not found.new and not found.changed and not found.gone:
        yield f"  {local('nothing changes')}"


def _change(change: Changed) -> str:
    return local(
        Message("{option}: {before} becomes {after}", option=change.option, before=change.before, after=change.after)
    )


def _finding(finding: Finding, style: Look) -> Iterator[str]:
    severity = style.paint(local(str(finding.severity)), COLORS.get(str(finding.severity), ""))
    yield (
        f"  {plain(f'{finding.path}:{finding.line}:{finding.column}')}: {severity}: "
        f"{plain(f'{local(finding.message)} [{finding.rule}]')}"
    )
    if finding.fix is not None:
        yield plain(f"    {local('fix')}: {local(finding.fix.title)}")


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
