"""The search: candidates that fit, fastest first, each proven by the same rules and the whole memory model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from preflight.job import Job
from preflight.layouts.counts import fewest
from preflight.layouts.counts import required as exactly
from preflight.layouts.distance import cost
from preflight.layouts.fit import listed_bytes, required
from preflight.layouts.grid import COUNTED, LISTED, Columns, Space, grid, present, sizes
from preflight.layouts.space import Limits, everywhere, space
from preflight.layouts.step_time import PASSES, Time, step_time
from preflight.memory import MemoryEstimate
from preflight.memory.device_need import budget
from preflight.memory.shape import Missing, shape
from preflight.run.cluster import Cluster
from preflight.run.sizes import Sizes
from preflight.source.finding import Edit, Finding, Severity
from preflight.source.record import NamedTuple

MOST_TRIED = 200
MOST_RANKED = 1000
SURELY = 1.02
"""A layout that needs so much more than there is, is not tried on the document."""
MOST_SETTINGS = 3


class Try(Protocol):
    """Makes edits and checks again: the new job and its findings, or why the edits cannot be made."""

    def __call__(self, edits: tuple[Edit, ...]) -> tuple[Job, tuple[Finding, ...]] | str:
        """In memory, and only the errors."""

    def proven(self, edits: tuple[Edit, ...]) -> tuple[Job, tuple[Finding, ...]] | str:
        """On the text, which is proven to change in nothing else."""


Progress = Callable[[int, int], None]


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
    """Layouts, best first; how many were looked at; why others were left out; why nothing could be searched.

    device: whose speed the times assume; "" where no device is named.
    """

    layouts: list[Found] = field(default_factory=list)
    considered: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    unknown: str = ""
    device: str = ""


def search(
    job: Job,
    edits_for: Callable[[Sizes], tuple[Edit, ...]],
    attempt: Try,
    limits: Limits = Limits(),
    progress: Progress | None = None,
) -> Result:
    """Layouts for a job's model, devices and unchanged global batch. edits_for writes sizes in the document's spelling.

    progress: told how many layouts are proven, of how many that are wanted.
    """
    result = Result(device=job.cluster.device.name if job.cluster.device else "")
    try:
        where = space(job, limits)
    except Missing as missing:
        return Result(unknown=str(missing))
    where = replace(where, cheap=_cheap(where, edits_for, attempt))
    columns, result.rejected = grid(where)
    result.considered = len(columns["tensor"])
    if not result.considered:
        return result
    limit = budget(job.cluster)
    available = limit if limit is not None else math.inf
    need = required(where, columns, job.cluster) if where.measured else np.zeros(result.considered)
    listed, share = _shares(where, columns, need, job, available)
    need = np.where(
        (columns["recompute"] == COUNTED) & ((np.maximum(listed, share) <= 0) | (share > 1)), math.inf, need
    )
    times = step_time(where, columns, job.cluster.device, np.clip(share, 0, 1), _moved(where, columns, listed - share))
    result.rejected["does not fit in memory"] = int((need > available).sum())
    proof = _Proof(result, job.cluster, where, columns, times, available, limits, edits_for, attempt)
    for row in _ranked(where, columns, need, times, available):
        if len(result.layouts) >= limits.show or proof.tried >= MOST_TRIED:
            break
        proof.take(row)
        if progress is not None:
            progress(len(result.layouts), limits.show)
    return result


def _cheap(where: Space, edits_for: Callable[[Sizes], tuple[Edit, ...]], attempt: Try) -> frozenset[str]:
    """Outputs that the framework can be told to make again operator by operator,
    found by telling it in the present layout."""
    if (
        where.split != "any"
        or where.near is not None
        or not where.measured
        or where.even
        or len(where.shape.stages) > 1
    ):
        return frozenset()
    held = where.shape.stages[0]
    tried = attempt(edits_for(present(where)._replace(full_layers=(0,) * len(held), listed=held)))
    if isinstance(tried, str) or tried[0].plan.recompute.repeated.raw:
        return frozenset()
    return everywhere(tried[0].plan)


def _shares(where: Space, columns: Columns, need: Any, job: Job, available: float) -> tuple[Any, Any]:
    """The shares of its layers that a candidate has to recompute to fit: cheap operators, and in full.
    The second is above 1 where all are not enough."""
    counted = columns["recompute"] == COUNTED
    listed, share = np.zeros(len(need)), np.zeros(len(need))
    if not where.measured or available == math.inf or not counted.any():
        return listed, share
    rows = {name: values[counted] for name, values in columns.items()}
    without, some = (
        required(where, {**rows, "recompute": np.full_like(rows["recompute"], code)}, job.cluster)
        for code in (0, LISTED)
    )
    layers = np.ceil(sum(map(sum, where.shape.stages)) / rows["pipeline"])
    share[counted] = np.maximum(
        np.ceil((some - available) / np.maximum(some - need[counted], 1.0) * layers) / layers, 0
    )
    part = np.clip(np.ceil((without - available) / np.maximum(without - some, 1.0) * layers) / layers, 0, 1)
    listed[counted] = np.where(without - some > 1.0, part, 0.0)
    return listed, share


def _moved(where: Space, columns: Columns, listed: Any) -> Any:
    """Bytes that recomputed cheap operators read and write on a device in a step."""
    if not where.cheap:
        return 0.0
    layers = sum(map(sum, where.shape.stages)) / columns["pipeline"]
    return np.maximum(listed, 0) * layers * PASSES * listed_bytes(where, columns) * columns["micro_batches"]


def _ranked(where: Space, columns: Columns, need: Any, times: Time, available: float) -> list[int]:
    """Rows that fit, fastest first (or least changed first); ties go to the simpler layout."""
    simple = columns["virtual"] + columns["pipeline"] + columns["context"] + columns["tensor"]
    order = np.lexsort(
        (simple, times.total) if where.near is None else (times.total, cost(columns, where.near, stated=where.stated))
    )
    return [int(row) for row in order if need[row] <= available * 1.05][:MOST_RANKED]


@dataclass
class _Proof:
    """Tries candidates on the document itself."""

    result: Result
    cluster: Cluster
    where: Space
    columns: Columns
    times: Time
    available: float
    limits: Limits
    edits_for: Callable[[Sizes], tuple[Edit, ...]]
    attempt: Try
    tried: int = 0

    def take(self, row: int) -> None:
        """Keep a candidate if the document can be changed to it, the rules find no error, and every rank fits."""
        rejected = self.result.rejected
        wanted = sizes(self.columns, row, self.where)._replace(sharded=self.limits.sharded)
        if self.columns["recompute"][row] == COUNTED:
            counted = self.counted(wanted)
            if counted is None:
                rejected["does not fit in memory"] += 1
                return
            wanted = counted
        if (
            self.where.measured
            and exactly(self.where.shape, wanted, self.cluster, self.where.selected) > self.available * SURELY
        ):
            rejected["does not fit in memory"] += 1
            return
        edits = self.edits_for(wanted)
        if self.where.near is not None and (why := self.needless(edits)):
            rejected[why] += 1
            return
        self.tried += 1
        why, job = "", None
        for attempt in (self.attempt, self.attempt.proven):
            job, why = self.judged(attempt(edits))
            if job is None:
                break
        if job is not None:
            self.keep(row, wanted, edits, job)
        else:
            rejected[why] += 1

    def judged(self, tried: tuple[Job, tuple[Finding, ...]] | str) -> tuple[Job | None, str]:
        """The job, if the rules find no error and every rank fits; else why not."""
        if isinstance(tried, str):
            return None, tried
        job, findings = tried
        errors = sorted(
            {
                f.rule
                for f in findings
                if f.severity is Severity.ERROR and (f.layout or (f.rule, f.message) not in self.limits.others)
            }
        )
        if errors:
            return None, f"rule {errors[0]}"
        return (job, "") if self.fits(job) else (None, "does not fit in memory")

    def counted(self, wanted: Sizes) -> Sizes | None:
        """With the cheapest recomputation of each stage; None where all layers are not enough."""
        tried = self.attempt(self.edits_for(wanted))
        if isinstance(tried, str) or not tried[0].memory.stages:
            return None
        counts = fewest(
            shape(tried[0].plan, self.where.shape.architecture), self.cluster, self.available, self.where.cheap
        )
        if counts is None:
            return None
        return wanted._replace(full_layers=counts.full, listed=counts.listed if any(counts.listed) else None)

    def needless(self, edits: tuple[Edit, ...]) -> str:
        """Why a change is not worth to be tried beside those that were found; "" when it is."""
        if len({edit.key for edit in edits}) > MOST_SETTINGS:
            return f"more than {MOST_SETTINGS} settings would change"
        if not edits or any(set(_plain(found.edits)) <= set(_plain(edits)) for found in self.result.layouts):
            return "a smaller change is enough"
        return ""

    def fits(self, job: Job) -> bool:
        """Whether every rank fits; where memory cannot be estimated,
        only a change that cures a fault may be offered."""
        if job.memory.verdict == "fits":
            return True
        return (self.available == math.inf and bool(job.memory.stages)) or (
            self.where.near is not None and job.memory.verdict == "unknown"
        )

    def keep(self, row: int, wanted: Sizes, edits: tuple[Edit, ...], job: Job) -> None:
        worst, times = job.memory.worst, self.times
        headroom = self.available - (worst.required if worst else 0.0)
        seconds, bubble, communication, mfu = (
            float(part[row]) for part in (times.total, times.bubble, times.communication, times.mfu)
        )
        self.result.layouts.append(Found(wanted, seconds, bubble, communication, mfu, headroom, job.memory, edits))


def _plain(edits: tuple[Edit, ...]) -> list[tuple[object, ...]]:
    return [(edit.action, edit.key, repr(edit.value)) for edit in edits]
