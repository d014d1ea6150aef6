"""Fixes from the search: the smallest change of the layout that cures a finding, attached after the rules have run."""

from __future__ import annotations

from dataclasses import replace

from preflight.engine import Report
from preflight.finding import Fix, Safety, Severity
from preflight.job import Job
from preflight.search.attempt import attempts
from preflight.search.layouts import Found, Limits, search
from preflight.sizes import Sizes
from preflight.value import Value, known
from preflight.workspace import Workspace

ALTERNATIVES = 3


def suggest(workspace: Workspace, report: Report) -> Report:
    """The report with a layout fix on every error that another layout would cure and that has no fix of its own."""
    findings = list(report.findings)
    for job in report.jobs:
        mine = [i for i, f in enumerate(findings) if f.layout and f.fix is None and f.severity is Severity.ERROR and f.path == job.documents[0].source.name]
        if not mine or job.arguments.relayout is None:
            continue
        found = search(job, job.arguments.relayout, attempts(workspace, report, job), Limits(show=1 + ALTERNATIVES, near=current(job)))
        fixes = [_fix(layout, job) for layout in found.layouts]
        for i in mine if fixes else ():
            findings[i] = replace(findings[i], fix=fixes[0], alternatives=tuple(fixes[1:]))
    return replace(report, findings=tuple(findings))


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
    words = [f"{name.replace('_', ' ')} {after[name]}" for name in after if after[name] != before[name] and name not in ("data", "micro_batches")]
    return Fix(f"change the layout: {', '.join(words) or 'as it is'}", found.edits, Safety.UNSAFE)
