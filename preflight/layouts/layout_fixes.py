"""Fixes from the search: the smallest change of the layout that fixes a finding, attached after the rules have run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Report
from preflight.checking.fix_policy import Policy
from preflight.fix.trial_edits import Attempts
from preflight.job import Job
from preflight.layouts.result import Found
from preflight.run.value import known
from preflight.source.extras import missing
from preflight.source.finding import Edit, Finding, Fix, Key, Kind, Safety, Severity

LAYOUT = "change the layout: "
ALTERNATIVES = 3


Absent = Callable[[str, str], None]
"""Called for a file in which no layout is searched for, with the reason."""


def suggest(workspace: Workspace, report: Report, absent: Absent | None = None) -> Report:
    """The report with layout fixes on every error that another layout would fix, after the error's own fix.

    absent: called if a search is needed and numpy is not installed; without it an error is raised.
    """
    findings = list(report.findings)
    for job in report.jobs:
        _without(workspace, report, job, findings)
        beside = [other for other in report.jobs if other.documents[0].source.name == job.documents[0].source.name]
        mine = [
            i
            for i, f in enumerate(findings)
            if f.layout
            and f.severity is Severity.ERROR
            and f.path == job.documents[0].source.name
            and (_stands_in(f, job) or not any(_stands_in(f, other) for other in beside))
        ]
        if not mine or job.arguments.relayout is None:
            continue
        others = frozenset((f.rule, f.message) for f in findings if not f.layout)
        try:
            layouts, policy = nearest(workspace, report, job, others), Policy(job)
        except ModuleNotFoundError as error:
            if absent is None or not missing(error):
                raise
            absent(job.documents[0].source.name, missing(error))
            continue
        for i in mine:
            guess = _is_a_guess(layouts, findings[i], job, policy)
            fastest = min((found.seconds for found in layouts), default=0)
            fixes = [_fix(layout, offered=guess or layout is not layouts[0], fastest=fastest) for layout in layouts]
            own = [fix for fix in (findings[i].fix, *findings[i].alternatives) if fix is not None]
            every = [*own, *(fix for fix in fixes if fix.edits not in [f.edits for f in own])]
            ways = replace(findings[i], fix=every[0] if every else None, alternatives=tuple(every[1:]))
            findings[i] = policy.ranked(ways)
    return replace(report, findings=tuple(findings))


def _stands_in(finding: Finding, job: Job) -> bool:
    """Whether a finding points to a setting of a run: the runs of a file have separate settings."""
    spans = (value.setting.span for value in job.arguments.written.values() if value.setting is not None)
    return any((span.path, span.start) == (finding.path, finding.span.start) for span in spans)


def _without(workspace: Workspace, report: Report, job: Job, findings: list[Finding]) -> None:
    """If a setting is refused and does not affect the training, its default is a possible fix."""
    attempt = Attempts(workspace, report, job)
    was = Counter((f.rule, f.message) for f in report.findings if f.severity is Severity.ERROR)
    for i, finding in enumerate(findings):
        key = tuple(takewhile(lambda part: isinstance(part, str), finding.key))
        if (
            finding.fix is not None
            or finding.layout
            or finding.severity is not Severity.ERROR
            or finding.path != job.documents[0].source.name
        ):
            continue
        if not key or key[-1] == "" or job.arguments.keeps(_name(key)):
            continue
        edits = (Edit("remove", key, run=job.documents[0].run),)
        tried = attempt(edits)
        tried = tried if isinstance(tried, str) else attempt.proven(edits)
        now = (
            Counter()
            if isinstance(tried, str)
            else Counter((f.rule, f.message) for f in tried[1] if f.severity is Severity.ERROR)
        )
        if (
            not isinstance(tried, str)
            and not now - was
            and now[finding.rule, finding.message] < was[finding.rule, finding.message]
        ):
            gone = Fix(f"remove {key[-1]}, so that its default applies", edits)
            findings[i] = Policy(job).ranked(replace(finding, fix=gone))


def _name(key: Key) -> str:
    """The name of the argument that a setting writes."""
    last = str(key[-1])
    return last.strip("-").replace("-", "_") if last.startswith("--") else ".".join(map(str, key))


def nearest(workspace: Workspace, report: Report, job: Job, others: frozenset[tuple[str, str]]) -> list[Found]:
    """Layouts that work, the smallest change first; if the optimizer states are unsharded, also with sharded ones."""
    from preflight.layouts.candidates import distance
    from preflight.layouts.search import search
    from preflight.layouts.search_inputs import Limits

    relayout, now = job.arguments.relayout, job.sizes
    assert relayout is not None
    limits = Limits(show=1 + ALTERNATIVES, near=now, others=others)
    attempt = Attempts(workspace, report, job)
    found = search(job, relayout, attempt, limits).layouts
    if not found and not job.plan.batch.total.written and not job.plan.layout.data_stated:
        found = search(job, relayout, attempt, limits._replace(free=True)).layouts
    if job.plan.optimizer.zero.raw == 0 and any(f.kind is Kind.MEMORY for f in report.findings):
        sharded = search(job, relayout, attempt, limits._replace(sharded=True)).layouts
        found = sorted([*sharded, *found], key=lambda layout: distance(layout.sizes, now))
    return found[: 1 + ALTERNATIVES]


def _is_a_guess(layouts: list[Found], finding: Finding, job: Job, policy: Policy) -> bool:
    """Whether the run may need more devices instead, the nearest layout changes a setting to which the finding does not
    point, another is equally near, or an unlikely size has become one of several."""
    if not finding.key or not layouts:
        return False
    sizes = known(job.plan.layout.world, job.plan.layout.tensor, job.plan.layout.pipeline, job.plan.layout.context)
    if sizes is not None and sizes[0] < sizes[1] * sizes[2] * sizes[3]:
        return True
    first = layouts[0].edits
    if [edit.key for edit in first] != [finding.key]:
        return True
    steps = [step for layout in layouts[:2] if (step := policy.step(layout.edits, finding.key)) is not None]
    if len(steps) == 2 and steps[0] == steps[1]:
        return True
    alike = [layout.edits[0].value for layout in layouts if [edit.key for edit in layout.edits] == [finding.key]]
    return policy.uneven(finding.key) and sum(size != 1 for size in alike) > 1


def _fix(found: Found, *, offered: bool, fastest: float) -> Fix:
    """The change in the terms of the document."""
    words = [f"{'set' if edit.action == 'set' else 'remove'} {edit.key[-1]}{_shown(edit)}" for edit in found.edits]
    title, cost = f"{LAYOUT}{', '.join(words)}", _cost(found, fastest)
    return Fix(title, found.edits, Safety.UNSAFE, offered=offered, cost=cost, layout=True)


def _cost(found: Found, fastest: float) -> str:
    """The cost of a layout compared with the others: estimated step time, memory; the search keeps the global batch."""
    worst = found.memory.worst
    told = [f"{worst.required / 2**30:.1f} GiB on the fullest stage"] if worst is not None else []
    if fastest > 0:
        slower = found.seconds / fastest - 1
        told.append(
            "the fastest of these" if slower < 0.005 else f"a step takes {slower:.0%} longer than the fastest of these"
        )
    return ", ".join([*told, "same global batch"])


def _shown(edit: Edit) -> str:
    return f" {edit.value}" if edit.action == "set" and edit.value is not None else ""
