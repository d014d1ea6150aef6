"""How much faster or slower the software of another time is on a device: containers differ where the command does
not."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from preflight import schemas
from preflight.memory.shape import Shape
from preflight.run.cluster import Device
from preflight.run.unmodelled import Unmodelled
from preflight.source.record import NamedTuple

DENSE, EXPERTS, LATENT, SINKS = "dense", "experts", "experts with latent attention", "attention sinks"


class Era(NamedTuple):
    """Containers of a time: what a kind of model takes there on a device, relative to the estimate. since, until: the
    first and the last container, as year and month (25.04). runs: how many measured ones it rests on."""

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
    """Which eras hold for a run."""
    if s.experts is None:
        return DENSE
    if Unmodelled.ATTENTION_SINKS in features:
        return SINKS
    return LATENT if s.latent is not None else EXPERTS


def era_factor(device: Device, kind: str, software: float | None) -> float:
    """What a run takes with this software, relative to the estimate; 1 where no difference was measured."""
    if software is None:
        return 1.0
    return next((era.factor for era in _of(device, kind) if era.since <= software <= era.until), 1.0)


def era_ends(device: Device, kind: str) -> tuple[float, float]:
    """The same with the fastest and with the slowest software that was measured."""
    factors = [1.0, *(era.factor for era in _of(device, kind))]
    return min(factors), max(factors)


def _of(device: Device, kind: str) -> Iterable[Era]:
    return (era for era in eras() if era.device == device.name and era.kind == kind)
