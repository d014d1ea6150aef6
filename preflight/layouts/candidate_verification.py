"""Tries the candidates of a search on the document itself: the same rules, the whole memory model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from preflight.job import Job
from preflight.layouts.candidate_memory import fewest
from preflight.layouts.candidate_memory import required_by_one as exactly
from preflight.layouts.candidate_step_time import Time, leaner, machine_of
from preflight.layouts.candidates import COUNTED, Columns, Space, sizes
from preflight.layouts.result import Found, Result
from preflight.layouts.search_inputs import Limits
from preflight.memory.inputs_from_plan import Missing, shape
from preflight.run.cluster import Cluster
from preflight.run.training_plan import Sizes
from preflight.run.value import known
from preflight.source.finding import Edit, Finding, Severity
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Protocol
from preflight.steptime.estimate import Timed, completed, timed
from preflight.steptime.layout_and_plan_traits import traits
from preflight.steptime.operators import model_operations


class Exact(NamedTuple):
    """The times of a layout by stage: seconds per step, the share of the bubble, seconds of communication, utilisation
    of the peak; seconds in 16 bits, if the search adds FP8."""

    seconds: float
    bubble: float
    communication: float
    mfu: float
    plain: float | None = None


def exact(job: Job, where: Space) -> Exact | None:
    """The step of a job in its present layout, on the machine of a search; None if a number is unknown."""
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


SURELY = 1.02
"""A layout that exceeds the limit by this factor is not tried on the document."""
MOST_SETTINGS = 3
SAID = ("tensor", "pipeline", "virtual", "context", "data", "micro")
OF_EXPERTS = ("expert", "expert_tensor")
NO_ROOM, RISKY = "does not fit in memory", "may run out of memory"


class Try(Protocol):
    """Makes edits and checks again: returns the new job and its findings, or the reason why the edits cannot be
    made."""

    def __call__(self, edits: tuple[Edit, ...]) -> tuple[Job, tuple[Finding, ...]] | str:
        """In memory, and only the errors."""

    def proven(self, edits: tuple[Edit, ...]) -> tuple[Job, tuple[Finding, ...]] | str:
        """On the text, with a proof that nothing else changes."""


@dataclass
class Proof:
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
        """Keep a candidate if the document can be edited accordingly, the rules find no error, and every rank fits."""
        rejected, wanted = self.result.rejected, self.wanted(row)
        if wanted is None:
            rejected[RISKY] += 1
            return
        edits = self.edits_for(wanted)
        if self.where.near is not None and (why := self.needless(edits)):
            rejected[why] += 1
            return
        self.tried += 1
        if why := self.shown(row, wanted, edits):
            rejected[why] += 1

    def wanted(self, row: int) -> Sizes | None:
        """The sizes of a candidate; None if the memory model already predicts that it may run out of memory."""
        found = sizes(self.columns, row, self.where)._replace(sharded=self.limits.sharded)
        if self.columns["recompute"][row] == COUNTED:
            counted = self.counted(found)
            if counted is None:
                return None
            found = counted
        needs = exactly(self.where.shape, found, self.cluster, self.where.selected) if self.where.measured else 0.0
        return found if needs <= self.available * SURELY else None

    def accepted(self, row: int) -> float | None:
        """The seconds of a candidate that passes the rules and fits, without proof on the text; otherwise None."""
        if (wanted := self.wanted(row)) is None:
            return None
        job, _ = self.judged(self.attempt(self.edits_for(wanted)))
        took = exact(job, self.where) if job is not None and self.says(job, wanted) else None
        return took.seconds if took is not None else None

    def shown(self, row: int, wanted: Sizes, edits: tuple[Edit, ...]) -> str:
        """Keep a proven layout, with fewer layers in its last stage if that is faster; "", or the reason for rejecting
        it."""
        job, why = self.judged(self.attempt(edits))
        if job is None:
            return why
        if self.limits.kinds and (better := leaner(job, wanted, self.where)) is not None:
            written = self.edits_for(better)
            other, why = self.judged(self.attempt(written))
            if other is not None and not self.kept(row, better, written, other):
                return ""
        return self.kept(row, wanted, edits, job)

    def kept(self, row: int, wanted: Sizes, edits: tuple[Edit, ...], tried: Job) -> str:
        """Keep a layout that passed in memory, if its text is also proven; "", or the reason for rejecting it."""
        if self.where.near is None and not self.says(tried, wanted):
            return "cannot be expressed with this release's options"
        job, why = self.judged(self.attempt.proven(edits))
        if job is not None:
            self.keep(row, wanted, edits, job)
        return why

    def says(self, job: Job, wanted: Sizes) -> bool:
        """Whether the file expresses the layout of the table: a release may lack an option for it."""
        now, held = job.sizes, known(job.plan.layout.stages)
        rows = wanted.chunks or ((wanted.stages,) if wanted.stages else None)
        if rows is not None and held is not None and held[0] != rows:
            return False
        if wanted.tensor > 1 and now.sequence_parallel is not wanted.sequence_parallel:
            return False
        names = (*SAID, *OF_EXPERTS) if self.where.shape.experts else SAID
        return all(getattr(now, name) == getattr(wanted, name) for name in names)

    def judged(self, tried: tuple[Job, tuple[Finding, ...]] | str) -> tuple[Job | None, str]:
        """The job if the rules find no error and every rank fits; otherwise the reason."""
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
        if not self.fits(job):
            return None, NO_ROOM if job.memory.verdict == "does-not-fit" else RISKY
        self.result.standing |= {f.rule for f in findings if f.severity is Severity.ERROR}
        return job, ""

    def counted(self, wanted: Sizes) -> Sizes | None:
        """With the cheapest recomputation of each stage; None if all layers are not enough."""
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
        """Why a change is not worth trying in addition to the accepted ones; "" if it is."""
        if len({edit.key for edit in edits}) > MOST_SETTINGS:
            return f"more than {MOST_SETTINGS} settings would change"
        if not edits or any(set(_plain(found.edits)) <= set(_plain(edits)) for found in self.result.layouts):
            return "a smaller change is enough"
        return ""

    def fits(self, job: Job) -> bool:
        """Whether every rank fits, including the reserve; if memory cannot be estimated, only a change that fixes a
        fault may be offered."""
        if job.memory.verdict == "fits":
            return job.memory.span[1] <= self.available
        return (self.available == math.inf and bool(job.memory.stages)) or (
            self.where.near is not None and job.memory.verdict == "unknown"
        )

    def keep(self, row: int, wanted: Sizes, edits: tuple[Edit, ...], job: Job) -> None:
        """Add it to the layouts that are shown, with its exact time, or with that of the columns if it is unknown."""
        budget = self.cluster.budget if self.cluster.budget is not None else math.inf
        if (found := as_found(job, wanted, self.where, budget, edits)) is None:
            worst, times = job.memory.worst, self.times
            headroom = budget - (worst.required if worst else 0.0)
            seconds, bubble, communication, mfu = (
                float(part[row]) for part in (times.total, times.bubble, times.communication, times.mfu)
            )
            found = Found(wanted, seconds, bubble, communication, mfu, headroom, job.memory, edits)
        self.result.layouts.append(found)


def _plain(edits: tuple[Edit, ...]) -> list[tuple[object, ...]]:
    return [(edit.action, edit.key, repr(edit.value)) for edit in edits]
