"""A line above each run: its layout, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from preflight.job import Job
from preflight.lsp.buffers import Buffer
from preflight.lsp.places import range_of
from preflight.report.memory import between
from preflight.run.cluster import GIB
from preflight.run.value import known

DEGREES = (("TP", "tensor"), ("PP", "pipeline"), ("CP", "context"), ("EP", "expert"), ("DP", "data"))


COMMAND = "preflight.memory"


def lenses(buffer: Buffer, uri: str) -> list[types.CodeLens]:
    """One lens for each run that the text holds now; behind it, the memory of each stage."""
    return [
        types.CodeLens(range_of(job.start), types.Command(title, COMMAND, arguments=[uri, number]))
        for number, job in enumerate(buffer.report.jobs)
        if job.start.path == buffer.source.name and (title := " · ".join(_parts(job)))
    ]


def memory_by_stage(buffer: Buffer, number: int) -> str:
    """What each pipeline stage of a run needs, or why that is not known."""
    jobs = buffer.report.jobs
    if not 0 <= number < len(jobs):
        return "this run is not there any more"
    estimate = jobs[number].memory
    if not estimate.stages:
        return "memory is not known: " + "; ".join(estimate.unknown or ("no size of the model is known",))
    needs = ", ".join(between(stage.low, stage.required) for stage in estimate.stages)
    if jobs[number].withheld:
        return f"GiB of each stage: {needs}; no verdict: {jobs[number].withheld}"
    return f"GiB of each stage: {needs}" + (f"; the device has {estimate.budget / GIB:.1f}" if estimate.budget else "")


def _parts(job: Job) -> Iterator[str]:
    for short, name in DEGREES:
        size = known(getattr(job.plan.layout, name))
        if size is not None and (size[0] != 1 or name in ("tensor", "pipeline", "data")):
            yield f"{short} {size[0]}"
    estimate = job.memory
    if estimate.worst is not None and not job.withheld:
        need = between(*estimate.span)
        yield f"{need} of {estimate.budget / GIB:.0f} GiB, {estimate.verdict}" if estimate.budget else f"{need} GiB"
