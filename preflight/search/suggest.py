"""Fixes from the search: the smallest change of the layout that cures a finding, attached after the rules have run."""

from __future__ import annotations

from dataclasses import replace

from preflight.engine import Report
from preflight.finding import Fix, Safety, Severity
from preflight.job import Job
from preflight.search.attempt import attempts
from preflight.search.layouts import Found, search
from preflight.search.near import distance
from preflight.search.space import Limits
from preflight.sizes import Sizes
from preflight.value import Value, known
from preflight.workspace import Workspace

ALTERNATIVES = 3
_FOLLOW = ("data", "micro_batches", "stages", "sharded", "full_layers")


def suggest(workspace: Workspace, report: Report) -> Report:
    """The report with layout fixes on every error that another layout would cure and that has no fix of its own."""
    findings = list(report.findings)
    for job in report.jobs:
        mine = [i for i, f in enumerate(findings) if f.layout and f.fix is None and f.severity is Severity.ERROR and f.path == job.documents[0].source.name]
        if not mine or job.arguments.relayout is None:
            continue
        others = frozenset((f.rule, f.message) for f in findings if not f.layout)
        fixes = [_fix(layout, job) for layout in nearest(workspace, report, job, others)]
        for i in mine if fixes else ():
            findings[i] = replace(findings[i], fix=fixes[0], alternatives=tuple(fixes[1:]))
    return replace(report, findings=tuple(findings))


def nearest(workspace: Workspace, report: Report, job: Job, others: frozenset[tuple[str, str]]) -> list[Found]:
    """Layouts that work, the smallest change first; where the optimizer states are whole, also with them sharded."""
    relayout, now = job.arguments.relayout, current(job)
    assert relayout is not None
    limits = Limits(show=1 + ALTERNATIVES, near=now, others=others)
    attempt = attempts(workspace, report, job)
    found = search(job, relayout, attempt, limits).layouts
    if not found and not job.plan.batch.total.written and not job.plan.layout.data_stated:
        found = search(job, relayout, attempt, limits._replace(free=True)).layouts
    if job.plan.optimizer.zero.raw == 0 and any(f.rule == "predicted-oom" for f in report.findings):
        sharded = search(job, relayout, attempt, limits._replace(sharded=True)).layouts
        found = sorted([*sharded, *found], key=lambda layout: distance(layout.sizes, now))
    return found[: 1 + ALTERNATIVES]


def current(job: Job) -> Sizes:
    """The layout as it stands; what is unknown counts as 1."""
    layout, batch, recompute = job.plan.layout, job.plan.batch, job.plan.recompute

    def number(value: Value) -> int:
        found = known(value)
        return int(found[0]) if found else 1

    mode = recompute.mode.raw if recompute.mode.known else "none"
    return Sizes(
        tensor=number(layout.tensor),
        pipeline=number(layout.pipeline),
        context=number(layout.context),
        expert=number(layout.expert),
        expert_tensor=number(layout.expert_tensor),
        data=number(layout.data),
        virtual=number(layout.virtual),
        sequence_parallel=bool(known(layout.sequence_parallel) and layout.sequence_parallel.raw),
        micro=number(batch.micro),
        micro_batches=number(batch.count),
        recompute=str(mode),
    )


def _fix(found: Found, job: Job) -> Fix:
    before, after = current(job)._asdict(), found.sizes._asdict()
    words = [f"{name.replace('_', ' ')} {after[name]}" for name in after if after[name] != before[name] and name not in _FOLLOW]
    words += ["optimizer states sharded"] if found.sizes.sharded else []
    words += [f"layers per stage {', '.join(map(str, found.sizes.stages))}"] if found.sizes.stages else []
    return Fix(f"change the layout: {', '.join(words) or 'as it is'}", found.edits, Safety.UNSAFE)
