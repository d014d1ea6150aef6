"""The effects of migrating to another release, as text and as plain data."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.checking.migration_effects import Changed, Migration
from preflight.fix.fixer import Outcome
from preflight.fix.migration import Rewritten
from preflight.report.source_excerpts_and_escapes import Look, plain
from preflight.source.finding import Finding, Message
from preflight.source.translation import local
from preflight.source.typing_without_import import Any

COLORS = {"error": "red", "warning": "yellow"}


def migration_text(found: Migration, style: Look) -> str:
    """A heading, the places to change, the findings that go away, and the defaults that change the training."""
    name = found.before.documents[0].source.name
    head = style.paint(plain(f"{name}: {found.before.target} -> {found.after.target}"), "bold")
    return "".join(f"{line}\n" for line in (head, *_body(found, style)))


def _body(found: Migration, style: Look) -> Iterator[str]:
    for finding in found.new:
        yield from _finding(finding, style)
    for change in found.changed:
        if change.typed:
            yield plain(f"  {_place(change)}{local(_change(change))}")
    for finding in found.gone:
        gone = local(Message("no longer found: {message}", message=finding.message))
        yield plain(f"  {finding.path}:{finding.line}:{finding.column}: {gone} [{finding.rule}]")
    for change in found.pins:
        told = Message("{change}, which changes the training; --write sets it explicitly", change=_change(change))
        yield plain(f"  {local(told)}")
    if not (found.new or found.gone or found.pins or any(change.typed for change in found.changed)):
        yield f"  {local('nothing changes')}"


def _change(change: Changed) -> Message:
    return Message(
        ("{option} changes from {before} to {after}"), option=change.option, before=change.before, after=change.after
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


def rewritten_text(found: Rewritten, style: Look) -> str:
    """For each run a heading, the changes with their places, and the decisions left to the user."""
    lines = list[str]()
    for one in found.found:
        name = one.before.documents[0].source.name
        lines.append(style.paint(plain(f"{name}: {one.before.target} -> {one.after.target}"), "bold"))
    done = style.paint(local("fixed"), "green")
    for outcome in found.result.outcomes:
        finding = outcome.finding
        detail = f" ({plain(local(outcome.detail))})" if outcome.detail else ""
        lines.append(f"  {_at(outcome)}: {done}: {plain(f'{local(finding.message)} [{finding.rule}]')}{detail}")
    for change in found.pinned:
        told = Message("{change}; the file currently sets {before}", change=_change(change), before=change.before)
        lines.append(f"  {done}: {plain(local(told))}")
    for outcome in found.left:
        lines += _finding(outcome.finding, style)
        lines.append(plain(f"    {local(outcome.detail or outcome.state)}"))
    doubtful = found.doubtful
    for change in found.unpinned:
        told = Message("{change}, which changes the training; no option preserves it", change=_change(change))
        if change in doubtful:
            told = Message(
                "{change}, which changes the training unless the run sets the option when it starts",
                change=_change(change),
            )
        lines.append(f"  {plain(local(told))}")
    if len(lines) == len(found.found):
        lines.append(f"  {local('nothing to rewrite')}")
    return "".join(f"{line}\n" for line in lines)


def _at(outcome: Outcome) -> str:
    at = outcome.place or outcome.finding.span.source.position(outcome.finding.span.start)
    return plain(f"{outcome.finding.path}:{at.line}:{at.column}")


def rewritten_dict(found: Rewritten) -> dict[str, Any]:
    """The same for programs."""
    return {
        "path": found.found[0].before.documents[0].source.name if found.found else "",
        "changed": [_finding_dict(outcome.finding) | {"change": outcome.detail} for outcome in found.result.outcomes],
        "pinned": [{"name": change.name, "value": _data(change.before)} for change in found.pinned],
        "left": [_finding_dict(outcome.finding) | {"why": outcome.detail or outcome.state} for outcome in found.left],
    }


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
