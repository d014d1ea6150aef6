"""The uncertainty of step time estimates: residuals of published runs by cause, older or newer software, and unmodelled
features."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

from preflight import schemas
from preflight.memory.inputs_from_plan import Shape
from preflight.run.cluster import Device
from preflight.run.training_plan import Plan
from preflight.run.unmodelled_features import Unmodelled
from preflight.source.record import NamedTuple
from preflight.steptime.achieved_rates import RATES, Machine, calm, family
from preflight.steptime.layout_and_plan_traits import Traits

LONG = 32_768
"""The sequence length, in tokens, above which attention dominates; few such runs are published."""
MEASURED = "a measured run of the same model"
STATED = ", its network stated"
"""Suffix of the kind of a run on a device with constants from a shared network, if the caller states another
network."""
NETWORK = "the cluster's network is unknown; pass --network"
SOFTWARE = "the container is unknown; set software under [cluster]"


class Cause(NamedTuple):
    """A cause of residuals: the ratio of measured to estimated seconds is between two factors in nine of ten runs."""

    name: str
    low: float
    high: float
    runs: int

    @property
    def width(self) -> float:
        """The distance between the two ends, as a logarithm."""
        return math.log(self.high / self.low)


class Range(NamedTuple):
    """The factors that bound the measured time relative to the estimate, and the causes of their width."""

    low: float
    high: float
    because: str


@cache
def causes() -> dict[str, Cause]:
    """Every cause with measured residuals, by name."""
    rows = schemas.read("step_time_ranges")["causes"]
    return {row["name"]: Cause(row["name"], row["low"], row["high"], row["runs"]) for row in rows}


def names(s: Shape, t: Traits, m: Machine) -> tuple[str, ...]:
    """The properties of a run that determine its residual: its kind on its device first, then its special features."""
    kind = family(m.device)
    kind = "blackwell" if kind.startswith("blackwell") else kind
    stack = " under PyTorch" if t.eager else " under MindSpore" if kind == "ascend" else ""
    if m.rates != RATES[family(m.device)]._replace(measured=m.rates.measured):
        stack = STATED
    if s.experts is not None:
        return (f"experts on {kind}{stack}", *_special(s))
    return (f"a dense model on {kind}{stack}", *_special(s))


def _special(s: Shape) -> Iterable[str]:
    if s.context > 1:
        yield "context parallelism"
    if s.sequence >= LONG:
        yield f"sequences of {LONG:,} tokens or more"


def measured_range(found: Iterable[str], calibrated: bool) -> Range:
    """The range of a run with these causes: the lowest low end to the highest high end.

    If estimates are scaled by a measured run of the user, the difference between two runs of one model remains.
    """
    known = causes()
    if calibrated:
        only = known[MEASURED]
        return Range(only.low, only.high, MEASURED)
    kind, *special = found
    general = known[_general(kind)]._replace(name=f"{kind}, for which too few models were measured")
    rows = [known.get(kind) or general, *(known[name] for name in special if name in known)]
    widest = max(rows, key=lambda row: row.width)
    return Range(min(row.low for row in rows), max(row.high for row in rows), widest.name)


def narrows(low: float, high: float) -> bool:
    """Whether a measured run of the same model narrows the range."""
    return math.log(high / low) > causes()[MEASURED].width


def _general(name: str) -> str:
    """The kind of model on any device, if it was not measured on this one."""
    return "experts" if name.startswith("experts") else "a dense model"


def on_a_good_network(m: Machine) -> Machine | None:
    """The machine on a network as efficient as NVIDIA's own clusters; None if its constants already are.

    The constants of Ampere were measured on a shared network; the user's network may not be shared.
    """
    rates = calm(m.rates)
    return m._replace(rates=rates) if rates != m.rates and m.rates.measured == 1.0 else None


FACTORS: dict[Unmodelled, tuple[float, float]] = {
    # fine-tuning with samples of a tenth of the sequence takes a tenth of the time
    Unmodelled.SAMPLES_OF_ANY_LENGTH: (0.1, 1.05),
    # attention only within each sample, and unused space of the packing
    Unmodelled.SEVERAL_SAMPLES_IN_ONE: (0.7, 1.1),
    # 16 bytes per parameter pass through the host's link and memory, hidden or not
    Unmodelled.OFFLOAD_OF_STATES: (1.0, 2.0),
    # the step is repeated if a result is doubtful; state is kept for this
    Unmodelled.RERUN_VALIDATION: (1.0, 1.15),
    Unmodelled.DETERMINISTIC_KERNELS: (1.0, 1.6),
    Unmodelled.UNFUSED_OPERATORS: (0.93, 1.25),
    # all of 20 GPT-OSS runs took 1.16 to 1.63 times the estimate; if the container is stated, its era includes this
    Unmodelled.ATTENTION_SINKS: (1.0, 1.65),
    Unmodelled.ATTENTION_VARIANTS: (0.8, 1.25),
    Unmodelled.CHOSEN_BY_THE_FRAMEWORK: (0.75, 1.15),
    Unmodelled.MIXED_PRECISIONS: (0.9, 1.35),
    Unmodelled.EXPERT_TRICKS: (0.8, 1.25),
    Unmodelled.COMMUNICATION_TRICKS: (0.9, 1.15),
    Unmodelled.CHECKS_OF_EACH_STEP: (1.0, 1.2),
    Unmodelled.FREQUENT_SAVES: (1.0, 1.1),
}
"""Documented gaps: except for attention sinks, no published pair of runs that differ only in one of them bounds
these."""


DENSE, EXPERTS, LATENT, SINKS = "dense", "experts", "experts with latent attention", "attention sinks"


class Era(NamedTuple):
    """Containers of a time: what a kind of model takes there on a device, relative to the estimate. since, until: the
    first and the last container, as year and month (25.04). runs: the number of measured runs behind it."""

    device: str
    kind: str
    since: float
    until: float
    factor: float
    runs: int
    source: str


@cache
def eras() -> tuple[Era, ...]:
    """Every era that differs from the estimate."""
    return tuple(Era(**row) for row in schemas.read("step_time_eras")["eras"])


def kind_of(s: Shape, features: Iterable[Unmodelled]) -> str:
    """The eras that apply to a run."""
    if s.experts is None:
        return DENSE
    if Unmodelled.ATTENTION_SINKS in features:
        return SINKS
    return LATENT if s.latent is not None else EXPERTS


def era_factor(device: Device, kind: str, software: float | None) -> float:
    """The time with this software relative to the estimate; 1 if no difference was measured."""
    if software is None:
        return 1.0
    return next((era.factor for era in _of(device, kind) if era.since <= software <= era.until), 1.0)


def era_ends(device: Device, kind: str) -> tuple[float, float]:
    """The same with the fastest and with the slowest software that was measured."""
    factors = [1.0, *(era.factor for era in _of(device, kind))]
    return min(factors), max(factors)


def _of(device: Device, kind: str) -> Iterable[Era]:
    return (era for era in eras() if era.device == device.name and era.kind == kind)


def untimed(plan: Plan) -> tuple[Unmodelled, ...]:
    """The unmodelled features of a run, from its front end and its plan."""
    batch, optimizer = plan.batch, plan.optimizer
    found = list(plan.untimed)
    if batch.varying.known and batch.varying.raw is True:
        found.append(Unmodelled.SAMPLES_OF_ANY_LENGTH)
    if batch.packed.known and batch.packed.raw:
        found.append(Unmodelled.SEVERAL_SAMPLES_IN_ONE)
    if any(value.known and value.raw for value in (optimizer.offload, optimizer.swapped)):
        found.append(Unmodelled.OFFLOAD_OF_STATES)
    return tuple(dict.fromkeys(found))


def words(feature: Unmodelled) -> str:
    """The sentence about a feature under `assumed`."""
    return f"without {feature}: it has no term, so the range is wider"
