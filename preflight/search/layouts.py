"""The search: candidates that fit, fastest first, each proven by the same rules and the whole memory model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from preflight.finding import Edit, Finding, Severity
from preflight.job import Job
from preflight.memory import MemoryEstimate
from preflight.memory.need import budget
from preflight.memory.shape import Missing, shape
from preflight.search.fit import required
from preflight.search.grid import COLUMNS, RECOMPUTE, Columns, Space, grid, sizes
from preflight.search.time import Time, step_time
from preflight.sizes import Sizes
from preflight.value import known

MOST_TRIED = 200
Try = Callable[[tuple[Edit, ...]], "tuple[Job, tuple[Finding, ...]] | str"]
"""Applies edits in memory and checks again: the new job and its findings, or why the edits cannot be made."""


class Limits(NamedTuple):
    """What the user wants kept: exact sizes, upper bounds, and how many layouts to show. near: fewest changes from these first."""

    fixed: Mapping[str, int] = {}
    most: Mapping[str, int] = {}
    show: int = 10
    near: Sizes | None = None


class Found(NamedTuple):
    """A layout that passes the rules and fits: seconds per step (estimated), parts of it, bytes left on the device."""

    sizes: Sizes
    seconds: float
    bubble: float
    communication: float
    mfu: float
    headroom: float
    memory: MemoryEstimate
    edits: tuple[Edit, ...]


@dataclass
class Result:
    """Layouts, best first; how many were looked at; why others were left out; why nothing could be searched."""

    layouts: list[Found] = field(default_factory=list)
    considered: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    unknown: str = ""


def space(job: Job, limits: Limits) -> Space:
    """What is fixed for a job. Raises Missing when the model, the devices or the global batch are not known."""
    numbers = shape(_solid(job), job.cluster.device.architecture if job.cluster.device else 0)
    plan = job.plan
    world, batch = known(plan.layout.world), known(plan.batch.total)
    if world is None:
        raise Missing("the number of devices is not known; say --world-size")
    if batch is None:
        raise Missing("the global batch is not known")
    per_node = job.cluster.device.per_node if job.cluster.device else 8
    return Space(numbers, world[0], per_node, batch[0], stated=plan.layout.data_stated, fixed=limits.fixed, most=limits.most)


def _solid(job: Job) -> Any:
    """The plan with data parallel and stages filled in where the present layout is faulty: the search replaces both."""
    from dataclasses import replace

    from preflight.value import derived

    layout = job.plan.layout
    changes: dict[str, Any] = {}
    if known(layout.data) is None:
        changes["data"] = derived(1, "replaced by the search")
    if known(layout.stages) is None and (layers := known(job.plan.model.layers)):
        changes["stages"] = derived(((layers[0],),), "replaced by the search")
        changes["pipeline"] = derived(1, "replaced by the search")
    return replace(job.plan, layout=replace(layout, **changes)) if changes else job.plan


def search(job: Job, edits_for: Callable[[Sizes], tuple[Edit, ...]], attempt: Try, limits: Limits = Limits()) -> Result:
    """Layouts for a job's model, devices and unchanged global batch. edits_for writes sizes in the document's spelling."""
    result = Result()
    try:
        where = space(job, limits)
    except Missing as missing:
        return Result(unknown=str(missing))
    columns, result.rejected = grid(where)
    result.considered = len(columns["tensor"])
    if not result.considered:
        return result
    limit = budget(job.cluster)
    available = limit if limit is not None else float("inf")
    need = required(where, columns, job.cluster)
    times = step_time(where, columns, job.cluster.device)
    result.rejected["does not fit in memory"] = int((need > available).sum())
    for row in _ranked(columns, need, times, available, limits.near):
        if len(result.layouts) >= limits.show:
            break
        _prove(result, columns, row, times, edits_for, attempt, available)
    return result


def _ranked(columns: Columns, need: Any, times: Time, available: float, near: Sizes | None) -> list[int]:
    """Rows that fit, fastest first (or least changed first); ties go to the simpler layout."""
    simple = columns["virtual"] + columns["pipeline"] + columns["context"] + columns["tensor"]
    keys = (simple, times.total) if near is None else (times.total, _distance(columns, near))
    order = np.lexsort(keys)
    return [int(row) for row in order if need[row] <= available * 1.05][:MOST_TRIED]


def _distance(columns: Columns, near: Sizes) -> Any:
    """How many settings differ; data parallel and the number of micro-batches follow from the others."""
    now = {**near._asdict(), "recompute": RECOMPUTE.index(near.recompute), "sequence_parallel": int(near.sequence_parallel)}
    weights = {"data": 0, "micro_batches": 0, "sequence_parallel": 0.5}
    return sum(weights.get(name, 1) * (columns[name] != now[name]) for name in COLUMNS)


def _prove(result: Result, columns: Columns, row: int, times: Time, edits_for: Any, attempt: Try, available: float) -> None:
    """Keep a candidate if the document can be changed to it, the rules find no error, and every rank fits."""
    wanted = sizes(columns, row)
    edits = edits_for(wanted)
    tried = attempt(edits)
    if isinstance(tried, str):
        result.rejected[tried] += 1
        return
    job, findings = tried
    errors = sorted({f.rule for f in findings if f.severity is Severity.ERROR})
    if errors:
        result.rejected[f"rule {errors[0]}"] += 1
    elif job.memory.verdict != "fits" and not (available == float("inf") and job.memory.stages):
        result.rejected["does not fit in memory"] += 1
    else:
        worst = job.memory.worst
        headroom = available - (worst.required if worst else 0.0)
        seconds, bubble, communication, mfu = (float(part[row]) for part in (times.total, times.bubble, times.communication, times.mfu))
        result.layouts.append(Found(wanted, seconds, bubble, communication, mfu, headroom, job.memory, edits))
