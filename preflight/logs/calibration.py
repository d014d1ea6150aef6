"""Corrections of the estimates from measured runs on a cluster: factors by device and kind of model, with the number of
runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from preflight.job import Job
from preflight.logs.iterations import Iterations
from preflight.run.cluster import Factor
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError
from preflight.steptime import estimate

GIB = 2**30


class Run(NamedTuple):
    """A measured run and its estimate. seconds: estimated, None if unknown; allocated: estimated bytes at the peak of
    the fullest stage."""

    name: str
    measured: Iterations
    device: str
    experts: bool
    seconds: float | None
    low: float | None
    high: float | None
    allocated: float | None

    @property
    def pace(self) -> float | None:
        """The ratio of estimated to measured time."""
        return self.seconds / self.measured.seconds if self.seconds else None

    @property
    def beyond(self) -> float | None:
        """The bytes that it needed beyond its estimate."""
        known = self.allocated is not None and self.measured.allocated is not None
        return self.measured.allocated - self.allocated if known else None  # type: ignore[operator]


def measured_run(name: str, found: Iterations, job: Job) -> Run:
    """A run and its estimate on this cluster. Raises InputError if its device is unknown."""
    if job.cluster.device is None:
        raise InputError("the device is unknown; pass --device", job.documents[0].source.name)
    experts = job.plan.model.experts
    time = estimate(job.plan, job.cluster)
    stages = job.memory.stages
    allocated = max((stage.allocated_peak for stage in stages), default=None)
    seconds, low, high = (
        value * job.cluster.pace if value is not None else None for value in (time.seconds, time.low, time.high)
    )
    return Run(name, found, job.cluster.device.name, bool(experts.known and experts.raw), seconds, low, high, allocated)


def factors(runs: Iterable[Run]) -> tuple[Factor, ...]:
    """The factors of runs: the median of the runs for each device and kind of model."""
    kinds: dict[tuple[str, bool], list[Run]] = {}
    for run in runs:
        kinds.setdefault((run.device, run.experts), []).append(run)
    return tuple(_factor(device, experts, same) for (device, experts), same in sorted(kinds.items()))


def _factor(device: str, experts: bool, runs: Sequence[Run]) -> Factor:
    paces = [run.pace for run in runs if run.pace is not None]
    beyond = [run.beyond for run in runs if run.beyond is not None]
    shape = "experts" if experts else "dense"
    return Factor(device, shape, median(paces) if paces else None, median(beyond) if beyond else None, len(runs))


def settings_of(found: Iterable[Factor]) -> Iterator[str]:
    """The lines of settings that state the factors."""
    for factor in found:
        yield "[[measured.factors]]"
        yield f'device = "{factor.device}"'
        yield f'shape = "{factor.shape}"'
        if factor.pace is not None:
            yield f"pace = {factor.pace:.3f}"
        if factor.beyond is not None:
            yield f"beyond-gib = {factor.beyond / GIB:.2f}"
        yield f"runs = {factor.runs}"
        yield ""
