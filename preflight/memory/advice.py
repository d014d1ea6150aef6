"""Changes that reduce the memory of a run, and their savings: one change at a time, each estimated like the run
itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from preflight.memory.activations import FLASH
from preflight.memory.estimate import counted, stage
from preflight.memory.inputs_from_plan import Shape
from preflight.memory.result import Gap
from preflight.run.cluster import Cluster
from preflight.run.training_plan import Plan
from preflight.source.record import NamedTuple, replace
from preflight.source.typing_without_import import Any

SHOWN = 5
"""Maximum number of shown changes that can be written and pass the rules."""
LEAST = 0.01
"""Savings below this share of the need are not listed."""


class Saving(NamedTuple):
    """A change, the need of the decisive stage with it, and the saving in bytes. sizes: the change as layout sizes, if
    it is written as a layout."""

    change: str
    required: float
    saved: float
    sizes: Mapping[str, Any] = {}


def savings(plan: Plan, cluster: Cluster) -> list[Saving]:
    """The changes that save memory, largest saving first, each estimated for this run; nothing is written."""
    known = counted(plan, cluster)
    if known is None:
        return []
    numbers, beside = known
    now = _required(numbers, cluster, beside)
    found = []
    for words, changes, sizes in _changes(numbers):
        after = _required(replace(numbers, **changes), cluster, beside)
        if now - after > LEAST * now:
            found.append(Saving(words, after, now - after, sizes))
    return sorted(found, key=lambda saving: -saving.saved)


def _required(s: Shape, cluster: Cluster, beside: Gap) -> float:
    return max(stage(s, rank, cluster, beside).required for rank in range(s.pipeline))


Change = tuple[str, dict[str, Any], dict[str, Any]]
"""The description of a change, from the numbers of a run, and from the sizes of its layout."""


def _changes(s: Shape) -> Iterator[Change]:
    """Changes that keep the model and the devices."""
    if s.micro > 1 and s.micro % 2 == 0:
        words = f"a micro-batch size of {s.micro // 2} instead of {s.micro}"
        yield (
            words,
            {"micro": s.micro // 2, "count": 2 * s.count},
            {"micro": s.micro // 2, "micro_batches": 2 * s.count},
        )
    yield from _recomputed(s)
    yield from _kernels(s)
    if not s.zero and s.data * s.context > 1:
        shards = s.data * s.context
        ranks = max(1, shards * s.tensor // (s.expert * s.expert_tensor))
        words = "states shared over data ranks (distributed optimizer, optimizer parallel)"
        yield words, {"zero": 1, "shards": shards, "expert_shards": ranks}, {"sharded": True}
    yield from _spread(s)


def _recomputed(s: Shape) -> Iterator[Change]:
    """Recompute every layer, or half of them."""
    full = s.full_layers == s.stages if s.full_layers is not None else s.recompute == "full" and s.method != "block"
    if full:
        return
    plain: dict[str, Any] = {"modules": frozenset(), "operators": (), "recompute": "full", "method": "uniform"}
    whole = {**plain, "recompute_layers": 1, "full_layers": s.stages}
    yield "full recomputation of every layer", whole, {"recompute": "full"}
    half = tuple(tuple(-(-n // 2) for n in row) for row in s.stages)
    if s.recompute == "none" and half != s.stages:
        written = {"recompute": "full", "full_layers": tuple(map(sum, zip(*half, strict=True)))}
        yield "half of the layers recomputed", {**plain, "full_layers": half}, written


def _kernels(s: Shape) -> Iterator[Change]:
    """Kernels that keep less memory."""
    if s.attention not in FLASH:
        yield "a fused attention kernel", {"attention": "flash"}, {"fused": "attention"}
    if s.tensor > 1 and not s.sequence_parallel and not s.tensor_x:
        yield "sequence parallel", {"sequence_parallel": True}, {"sequence_parallel": True}
    if s.kernels == "transformer_engine" and s.cross_entropy not in ("te", "mindspore"):
        yield "a loss fused by Transformer Engine", {"cross_entropy": "te"}, {"fused": "loss"}


def _spread(s: Shape) -> Iterator[Change]:
    """Twice as many ranks per layer, at the cost of data parallelism."""
    fits = s.data % 2 == 0 and s.heads % (2 * s.tensor) == 0 and not s.tensor_x and s.experts is None
    if fits and 2 * s.tensor <= 8:
        both = {"tensor": 2 * s.tensor, "expert_tensor": 2 * s.expert_tensor, "sequence_parallel": True}
        both["data"] = s.data // 2
        words = f"a tensor-parallel size of {2 * s.tensor} instead of {s.tensor}"
        less = {"shards": max(1, s.shards // 2), "count": 2 * s.count}
        yield words, {**both, **less}, {**both, "micro_batches": 2 * s.count}
