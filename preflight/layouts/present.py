"""The layout as it stands: its sizes, its time and memory beside those of others."""

from __future__ import annotations

import math
from dataclasses import replace

from preflight.job import Job
from preflight.layouts.grid import Space
from preflight.layouts.result import Found
from preflight.layouts.step_time import machine_of
from preflight.memory.shape import Missing, shape
from preflight.run.sizes import Sizes
from preflight.source.finding import Edit
from preflight.source.record import NamedTuple
from preflight.steptime.assumptions import completed
from preflight.steptime.estimate import Timed, timed
from preflight.steptime.operations import model_operations
from preflight.steptime.traits import traits


class Exact(NamedTuple):
    """What a layout takes, stage by stage: seconds a step, the share of the bubble, seconds between devices, use of the
    peak; seconds in 16 bits, where FP8 is what the search adds."""

    seconds: float
    bubble: float
    communication: float
    mfu: float
    plain: float | None = None


def exact(job: Job, where: Space) -> Exact | None:
    """The step of a job as it is, on the machine of a search; None where a number is not known."""
    device = job.cluster.device
    machine = machine_of(where, device)
    try:
        s = shape(completed(job.plan)[0], machine.device.architecture)
    except Missing:
        return None
    t = traits(job.plan, s)
    found = timed(s, t, machine)
    plain = replace(s, fp8=False, fp8_recipe="")
    other = timed(plain, t._replace(recipe=""), machine).step.seconds if where.fp8 and t.recipe else None
    return Exact(
        float(found.step.seconds),
        float(found.step.bubble) / max(float(found.step.busy), 1e-9),
        float(found.step.exchange),
        _use(found),
        float(other) if other is not None else None,
    )


def _use(found: Timed) -> float:
    s = found.s
    work = model_operations(s, found.t) * s.micro * s.count * s.data
    devices = s.data * s.tensor * s.pipeline * s.context
    return float(work / (found.step.seconds * devices * found.m.peak(found.t.recipe)))


def as_found(job: Job, sizes: Sizes, where: Space, available: float, edits: tuple[Edit, ...] = ()) -> Found | None:
    """A layout with its time and memory."""
    if (took := exact(job, where)) is None:
        return None
    worst = job.memory.worst
    headroom = available - worst.required if worst is not None else math.nan
    return Found(
        sizes, took.seconds, took.bubble, took.communication, took.mfu, headroom, job.memory, edits, took.plain
    )
