"""A line above each run: its layout, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from preflight.job import Job
from preflight.lsp.buffers import Buffer
from preflight.lsp.places import range_of
from preflight.run.cluster import GIB
from preflight.run.value import known

DEGREES = (("TP", "tensor"), ("PP", "pipeline"), ("CP", "context"), ("EP", "expert"), ("DP", "data"))


def lenses(buffer: Buffer) -> list[types.CodeLens]:
    """One lens for each run that the text holds now."""
    return [
        types.CodeLens(range_of(job.start), types.Command(title, "preflight.memory"))
        for job in buffer.report.jobs
        if job.start.path == buffer.source.name and (title := " · ".join(_parts(job)))
    ]


def _parts(job: Job) -> Iterator[str]:
    for short, name in DEGREES:
        size = known(getattr(job.plan.layout, name))
        if size is not None and (size[0] != 1 or name in ("tensor", "pipeline", "data")):
            yield f"{short} {size[0]}"
    estimate = job.memory
    if estimate.worst is not None:
        need = f"{estimate.worst.required / GIB:.0f}"
        yield f"{need} of {estimate.budget / GIB:.0f} GiB, {estimate.verdict}" if estimate.budget else f"{need} GiB"
