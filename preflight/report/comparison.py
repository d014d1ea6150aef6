"""What a change means, as text, as Markdown for a comment in a review, and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from preflight.checking.comparison import Comparison, Difference, RunChange
from preflight.job import Job
from preflight.loaders.document import Unknown
from preflight.report.escapes import counted, plain
from preflight.report.json import finding_dict
from preflight.report.markdown import cell
from preflight.report.run_facts import facts
from preflight.report.style import Look
from preflight.run.value import Value
from preflight.source.finding import Finding
from preflight.source.language import columns, local, padded, phrases

COLORS = {"error": "red", "warning": "yellow"}
SHOWN = 12
"""Of the arguments that nobody types so many are listed."""
SHORT = 80
"""Characters of the two states of a fact that stand on one line."""
ABSENT = "not known"


def changed_facts(run: RunChange) -> list[tuple[str, str, str]]:
    """The facts of a run that a change changes: name, before, after; all of a run that is new, or gone."""
    one = facts(run.before) if run.before else {}
    two = facts(run.after) if run.after else {}
    names = one or two
    return [(name, one.get(name, ""), two.get(name, "")) for name in names if one.get(name, "") != two.get(name, "")]


def comparison_text(found: Comparison, look: Look) -> str:
    """The files, then of each run its facts and arguments, then the findings."""
    lines = [look.paint(plain(_title(found)), "bold")]
    for run in found.runs:
        lines += _run_text(run, several=len(found.runs) > 1)
    lines += _findings_text("new", found.new, look)
    lines += _findings_text("cured", found.cured, look)
    if found.same:
        lines.append(f"  {local('nothing changes for the run')}")
    return "".join(f"{line}\n" for line in lines)


def _title(found: Comparison) -> str:
    if not found.before or not found.after:
        return f"{found.after or found.before}: {local('new' if found.after else 'gone')}"
    return found.after if found.before == found.after else f"{found.before} -> {found.after}"


def _run_text(run: RunChange, *, several: bool) -> Iterator[str]:
    if several:
        yield f"  {_name(run)}"
    rows = changed_facts(run)
    width = max((columns(local(name)) for name, _, _ in rows), default=0)
    for name, before, after in rows:
        states = phrases(before), phrases(after)
        yield from (plain(f"  {line}") for line in _fact(padded(local(name), width), *states, run))
    typed, follow = _split(run.differences)
    for one in typed:
        what = f"  ({local(one.decides)})" if one.decides else ""
        yield plain(f"  {_place(one)}{one.name}: {_value(one.before)} -> {_value(one.after)}{what}")
    if follow:
        values = counted(len(follow), "derived value")
        yield f"  {local(f'and {values}:')}"
        yield from (plain(f"    {one.name}: {_value(one.before)} -> {_value(one.after)}") for one in follow[:SHOWN])
        if len(follow) > SHOWN:
            left = len(follow) - SHOWN
            yield f"    {local(f'and {left} more')}"


def _fact(name: str, before: str, after: str, run: RunChange) -> Iterator[str]:
    """A fact on one line where both states are short."""
    if not run.before or not run.after:
        yield f"{name}  {after or before}"
    elif len(before) + len(after) <= SHORT:
        yield f"{name}  {before or local(ABSENT)} -> {after or local(ABSENT)}"
    else:
        yield f"{name}  {before or local(ABSENT)}"
        yield f"{' ' * columns(name)}  -> {after or local(ABSENT)}"


def _name(run: RunChange) -> str:
    job = run.after or run.before
    state = "" if run.before and run.after else ", new" if run.after else ", gone"
    return f"run {job.documents[0].run + 1}{state}" if job else ""


def _split(differences: Iterable[Difference]) -> tuple[list[Difference], list[Difference]]:
    """Those that somebody types, what decides about the training first; and the others."""
    found = list(differences)
    typed = sorted((one for one in found if one.typed), key=lambda one: not one.decides)
    return typed, [one for one in found if not one.typed]


def _place(one: Difference) -> str:
    span = one.after.span or one.before.span
    return f"{span.path}:{span.line}:{span.column}: " if span is not None else ""


def _value(value: Value) -> str:
    if isinstance(value.raw, Unknown) and value.span is not None and "\n" not in value.span.text:
        return value.span.text
    if isinstance(value.raw, Unknown):
        return f"not known ({value.because})" if value.because else "not known"
    return "not set" if value.raw is None else str(value.raw) or "''"


def _findings_text(what: str, findings: Iterable[Finding], look: Look) -> Iterator[str]:
    for finding in findings:
        severity = look.paint(local(str(finding.severity)), COLORS.get(str(finding.severity), ""))
        place = plain(f"{finding.path}:{finding.line}:{finding.column}")
        yield f"  {local(what)}: {place}: {severity}: {plain(f'{local(finding.message)} [{finding.rule}]')}"


def comparisons_markdown(found: Iterable[Comparison]) -> str:
    """One comment for a review: a section for each file that changes."""
    changed = [one for one in found if not one.same]
    lines = ["## What this changes for the runs", ""]
    if not changed:
        lines.append("Nothing that preflight reads.")
    for one in changed:
        lines += [f"### {cell(_title(one))}", ""]
        for run in one.runs:
            lines += _run_markdown(run, several=len(one.runs) > 1)
        lines += _findings_markdown("New", one.new)
        lines += _findings_markdown("Cured", one.cured)
    return "\n".join(lines).rstrip() + "\n"


def _run_markdown(run: RunChange, *, several: bool) -> Iterator[str]:
    rows = [(cell(name), before, after) for name, before, after in changed_facts(run)]
    typed, follow = _split(run.differences)
    rows += [(f"`{one.name}`", _value(one.before), _value(one.after)) for one in typed]
    if several:
        yield from (f"**{_name(run)}**", "")
    if rows:
        yield from ("| | before | after |", "|---|---|---|")
        yield from (f"| {name} | {cell(before or ABSENT)} | {cell(after or ABSENT)} |" for name, before, after in rows)
        yield ""
    if follow:
        shown = [f"{one.name}: {_value(one.before)} -> {_value(one.after)}" for one in follow[:SHOWN]]
        more = f", and {len(follow) - SHOWN} more" if len(follow) > SHOWN else ""
        yield from (f"What follows from it: {'; '.join(map(cell, shown))}{more}", "")


def _findings_markdown(what: str, findings: Iterable[Finding]) -> Iterator[str]:
    rows = [
        f"| {cell(f'{one.path}:{one.line}')} | {one.severity} | {cell(one.message)} | `{one.rule}` |"
        for one in findings
    ]
    if rows:
        yield from (f"{what} findings:", "", "| place | severity | finding | rule |", "|---|---|---|---|", *rows, "")


def comparison_dict(found: Comparison) -> dict[str, Any]:
    """The same for programs."""
    return {
        "before": found.before or None,
        "after": found.after or None,
        "same": found.same,
        "runs": [_run_dict(run) for run in found.runs],
        "new": [finding_dict(finding) for finding in found.new],
        "cured": [finding_dict(finding) for finding in found.cured],
    }


def _run_dict(run: RunChange) -> dict[str, Any]:
    return {
        "facts": [{"name": name, "before": one or None, "after": two or None} for name, one, two in changed_facts(run)],
        "before": _state(run.before),
        "after": _state(run.after),
        "arguments": [
            {
                "name": one.name,
                "before": _data(one.before),
                "after": _data(one.after),
                "decides": one.decides or None,
                "typed": one.typed,
            }
            for one in run.differences
        ],
    }


def _state(job: Job | None) -> dict[str, Any] | None:
    """Memory of each stage in bytes, and the verdict."""
    if job is None:
        return None
    needs, least = ([getattr(stage, end) for stage in job.memory.stages] for end in ("required", "low"))
    verdict = "unknown" if job.withheld else job.memory.verdict
    return {"target": str(job.target), "verdict": verdict, "memory": needs, "least": least}


def _data(value: Value) -> object:
    raw = value.raw
    return raw if raw is None or isinstance(raw, (bool, int, float, str)) else str(raw)
