"""Fewer layers on the last stage, where the output layer and the loss make it slower than the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from preflight.job import Job
from preflight.layouts.grid import Space
from preflight.layouts.step_time import machine_of
from preflight.memory.shape import Missing, Shape, shape
from preflight.run.sizes import Sizes
from preflight.steptime.assumptions import completed
from preflight.steptime.estimate import timed
from preflight.steptime.traits import traits

GAIN = 0.01
"""A change of the stages that gains less is not worth a setting."""


def leaner(job: Job, wanted: Sizes, where: Space) -> Sizes | None:
    """The layout with stages that take more equally long; None where that gains nothing, or cannot be written."""
    chunked = wanted.virtual > 1
    if not where.split or wanted.pipeline < 2 or wanted.full_layers or wanted.chunks or chunked > where.chunked:
        return None
    machine = machine_of(where, job.cluster.device)
    try:
        s = shape(completed(job.plan)[0], machine.device.architecture)
    except Missing:
        return None
    t = traits(job.plan, s)

    def seconds(stages: tuple[tuple[int, ...], ...]) -> float:
        return float(timed(replace(s, stages=stages), t, machine).step.seconds)

    rows = (_chunks(row, s.virtual) for row in _rows(s, "any" if chunked else where.split) if min(row) >= s.virtual)
    best = min(rows, key=seconds, default=s.stages)
    if seconds(best) >= (1 - GAIN) * seconds(s.stages):
        return None
    return wanted._replace(chunks=best) if chunked else wanted._replace(stages=best[0])


def _chunks(row: tuple[int, ...], virtual: int) -> tuple[tuple[int, ...], ...]:
    """The layers of each stage over its virtual stages, the later ones with fewer."""
    return tuple(tuple(held // virtual + (v < held % virtual) for held in row) for v in range(virtual))


def _rows(s: Shape, split: str) -> Iterator[tuple[int, ...]]:
    """Layers of each stage with fewer on the last: of any stage, or of the ends about equal ones between."""
    layers, p = sum(map(sum, s.stages)), s.pipeline
    each = layers // p
    for last in range(max(1, each - 4), each + 1):
        if split == "any" or p == 2:
            most, more = divmod(layers - last, p - 1)
            yield (*(most + (rank >= p - 1 - more) for rank in range(p - 1)), last)
    for middle in range(each, each + 3) if split != "any" and p > 2 else ():
        ends = layers - (p - 2) * middle
        yield from ((ends - last, *[middle] * (p - 2), last) for last in range(1, ends) if ends - last <= middle + 1)
