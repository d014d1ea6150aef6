"""Fewer layers on the last stage, where the output layer and the loss make it slower than the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from preflight.job import Job
from preflight.layouts.grid import Space
from preflight.layouts.step_time import machine_of
from preflight.memory.shape import Missing, Shape, shape
from preflight.run.sizes import Sizes
from preflight.steptime.estimate import timed
from preflight.steptime.traits import traits

GAIN = 0.01
"""A change of the stages that gains less is not worth a setting."""


def leaner(job: Job, wanted: Sizes, where: Space) -> Sizes | None:
    """The layout with stages that take more equally long; None where that gains nothing, or cannot be written."""
    if not where.split or wanted.virtual > 1 or wanted.pipeline < 2 or wanted.full_layers or wanted.chunks:
        return None
    machine = machine_of(where, job.cluster.device)
    try:
        s = shape(job.plan, machine.device.architecture)
    except Missing:
        return None
    t, now = traits(job.plan, s), s.stages[0]

    def seconds(row: tuple[int, ...]) -> float:
        return float(timed(replace(s, stages=(row,)), t, machine).step.seconds)

    best = min(_rows(s, where.split), key=seconds, default=now)
    return wanted._replace(stages=best) if seconds(best) < (1 - GAIN) * seconds(now) else None


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
