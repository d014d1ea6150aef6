"""Estimated step time of all candidates at once; seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from preflight.job import Job
from preflight.layouts.candidate_memory import modules
from preflight.layouts.candidates import COUNTED, Columns, Space
from preflight.memory.inputs_from_plan import Missing, Shape, shape
from preflight.run.cluster import Device
from preflight.run.training_plan import Sizes
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any
from preflight.steptime.achieved_rates import FALLBACK, RATES, Machine, family
from preflight.steptime.estimate import completed, timed
from preflight.steptime.layer import Parts
from preflight.steptime.layout_and_plan_traits import Spread, Traits, traits
from preflight.steptime.operators import Both, model_operations
from preflight.steptime.step import Held, Layers, layers_of, stage_times, step


class Time(NamedTuple):
    """Seconds per step and candidate: the total and its parts; bubble is a fraction of the compute time."""

    total: Any
    compute: Any
    bubble: Any
    communication: Any
    mfu: Any


def machine_of(space: Space, device: Device | None) -> Machine:
    """The machine for timing candidates, with its network and software; without a named device, one similar to an
    A100."""
    if space.machine is not None:
        return space.machine
    device = device or FALLBACK
    rates = RATES[family(device)]._replace(measured=space.pace)
    return Machine(device, max(space.per_node, device.domain), rates)


def step_time(space: Space, columns: Columns, device: Device | None, share: Any = 1.0, moved: Any = 0.0) -> Time:
    """Times of every candidate. share: fully recomputed layers, for candidates that count them; moved: bytes that
    recomputed elementwise operators read and write per device and step."""
    m, t = machine_of(space, device), space.traits
    s = replace(space.shape, modules=modules(space.shape, space.selected), vocab=space.vocab or space.shape.vocab)
    w = _spread(columns)
    again = moved / m.memory / np.maximum(columns["micro_batches"], 1)
    kinds, counts = _stages(space, columns, share, again)
    layers = _layers(s, t, w, m)
    found = step(s, w, m, stage_times(s, t, w, m, kinds, layers), counts)
    work = model_operations(s, t) * w.micro * w.count * w.data
    compute = np.maximum(found.busy - found.exchange, 1e-9)
    return Time(
        found.seconds, compute, found.bubble / compute, found.exchange,
        work / (found.seconds * space.world * m.peak(t.recipe)),
    )  # fmt: skip


# fmt: off
_DEGREES = ("tensor", "pipeline", "context", "data", "expert", "expert_tensor", "virtual", "sequence_parallel", "micro")
# fmt: on


def _spread(columns: Columns) -> Spread:
    """The candidates' degrees as floats: products of integer sizes overflow."""
    return Spread(
        **{name: columns[name].astype(np.float64) for name in _DEGREES},
        count=np.maximum(columns["micro_batches"], 1).astype(np.float64),
        selective=(columns["recompute"] == 1).astype(np.float64),
    )


def _layers(s: Shape, t: Traits, w: Spread, m: Machine) -> Layers:
    """The time of a layer, computed once for candidates that split it in the same way."""
    split = np.zeros(len(w.tensor), dtype=np.int64)
    for name in _SPLITS:
        values = getattr(w, name).astype(np.int64)
        split = split * (int(values.max(initial=0)) + 1) + values
    _, first, index = np.unique(split, return_index=True, return_inverse=True)
    some = layers_of(s, t, w._replace(**{name: getattr(w, name)[first] for name in _SPLITS}), m)
    index = index.reshape(-1)

    def whole(parts: Parts) -> dict[str, Both]:
        return {name: Both(*(np.broadcast_to(of, first.shape)[index] for of in both)) for name, both in parts.items()}

    return Layers(whole(some.dense), whole(some.routed))


_SPLITS = ("tensor", "context", "expert", "expert_tensor", "sequence_parallel", "micro")


def _stages(space: Space, columns: Columns, share: Any, again: Any) -> tuple[list[Held], list[Any]]:
    """The first stage, the middle ones, and the last; if layers are not divisible, the ends have fewer."""
    p = columns["pipeline"].astype(np.float64)
    layers = sum(map(sum, space.shape.stages))
    experts = space.shape.experts
    routed = sum(experts.layers[:layers]) / layers if experts and layers else 0.0
    middle = np.where(p > 2, np.ceil(layers / p), layers / p)
    ends = np.where(p > 2, np.maximum((layers - (p - 2) * middle) / 2, 0), layers / p)
    mode = columns["recompute"]
    full = np.where(mode == COUNTED, share, mode == COUNTED - 1)

    def held(of: Any, first: Any, last: Any) -> Held:
        return Held(of * (1 - routed), of * routed, first, last, of * full, again)

    alone = (p == 1).astype(np.float64)
    kinds = [held(ends, 1.0, alone), held(middle, 0.0, 0.0), held(ends, 0.0, 1.0)]
    return kinds, [np.ones_like(p), np.maximum(p - 2, 0), 1 - alone]


GAIN = 0.01
"""A change of the stages that gains less than this is not worth a setting."""


def leaner(job: Job, wanted: Sizes, where: Space) -> Sizes | None:
    """The layout with its longer stages balanced; None if that gains nothing, or cannot be written."""
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
    """The layers of each stage over its virtual stages; later ones have fewer."""
    return tuple(tuple(held // virtual + (v < held % virtual) for held in row) for v in range(virtual))


def _rows(s: Shape, split: str) -> Iterator[tuple[int, ...]]:
    """Layers of each stage with fewer on the last: for any stage, or for the ends around equal middle stages."""
    layers, p = sum(map(sum, s.stages)), s.pipeline
    each = layers // p
    for last in range(max(1, each - 4), each + 1):
        if split == "any" or p == 2:
            most, more = divmod(layers - last, p - 1)
            yield (*(most + (rank >= p - 1 - more) for rank in range(p - 1)), last)
    for middle in range(each, each + 3) if split != "any" and p > 2 else ():
        ends = layers - (p - 2) * middle
        yield from ((ends - last, *[middle] * (p - 2), last) for last in range(1, ends) if ends - last <= middle + 1)
