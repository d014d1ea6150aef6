"""Memory of all candidates at once, and the number of layers per stage that must be recomputed to fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from preflight.layouts.candidates import LISTED, RECOMPUTE, Columns, Space
from preflight.memory import activations, device_need, parameters, peak, static_memory
from preflight.memory.estimate import stage
from preflight.memory.inputs_from_plan import Shape
from preflight.memory.parameters import Parameters
from preflight.run.cluster import Cluster
from preflight.run.training_plan import Sizes
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any
from preflight.steptime.achieved_rates import machine
from preflight.steptime.estimate import timed
from preflight.steptime.layout_and_plan_traits import Traits


def placed(s: Shape, wanted: Sizes, selected: frozenset[str] = frozenset()) -> Shape:
    """The model in another layout; uneven layers are placed as the layout states, otherwise as now, otherwise rounded
    up."""
    layers = sum(map(sum, s.stages))
    row = wanted.stages or (-(-layers // (wanted.pipeline * wanted.virtual)),) * wanted.pipeline
    same = wanted.stages is None and (len(s.stages), len(s.stages[0])) == (wanted.virtual, wanted.pipeline)
    chunks = wanted.chunks or (s.stages if same else (row,) * wanted.virtual)
    expert_grid = wanted.expert_tensor * wanted.expert * wanted.pipeline
    world = wanted.data * wanted.tensor * wanted.context * wanted.pipeline
    return replace(
        s, stages=chunks, tensor=wanted.tensor, pipeline=wanted.pipeline, context=wanted.context, expert=wanted.expert,
        expert_tensor=wanted.expert_tensor, data=wanted.data, sequence_parallel=wanted.sequence_parallel,
        micro=wanted.micro,
        count=max(wanted.micro_batches, 1), group=wanted.pipeline, recompute=wanted.recompute, method="uniform",
        recompute_layers=1,
        modules=modules(s, selected) if wanted.recompute == "selective" else frozenset(),
        operators=((tuple(sorted(selected)), chunks),) if wanted.recompute == "selective" and selected else (),
        shards=wanted.data * wanted.context if s.zero else 1,
        expert_shards=max(1, world // expert_grid) if s.zero else 1,
    )  # fmt: skip


def modules(s: Shape, selected: frozenset[str]) -> frozenset[str]:
    """The meaning of selective recomputation: the modules or operators named in the config, otherwise core
    attention."""
    return s.modules if s.modules or selected else frozenset(("core_attn",))


def required_by_one(s: Shape, wanted: Sizes, cluster: Cluster, selected: frozenset[str] = frozenset()) -> float:
    """The bytes needed by the worst of the first, second and last rank of a layout. selected: outputs that operators
    named for every layer free in selective recomputation."""
    one = placed(s, wanted, selected)
    return max(stage(one, rank, cluster).required for rank in {0, min(1, one.pipeline - 1), one.pipeline - 1})


class Counts(NamedTuple):
    """The number of layers per stage that are fully recomputed, and of those with recomputed cheap operators, including
    the former."""

    full: tuple[int, ...]
    listed: tuple[int, ...]


def fewest(s: Shape, cluster: Cluster, available: float, cheap: frozenset[str] = frozenset()) -> Counts | None:
    """The cheapest recomputation of each stage that fits: cheap operators in the fewest layers or, if all layers are
    not enough, the fewest layers in full. None if even all layers in full do not fit."""
    found = [_cheapest(s, cluster, rank, available, cheap) for rank in range(s.pipeline)]
    counts = [pair for pair in found if pair is not None]
    return Counts(*map(tuple, zip(*counts, strict=True))) if len(counts) == len(found) else None


def _cheapest(s: Shape, cluster: Cluster, rank: int, available: float, cheap: frozenset[str]) -> tuple[int, int] | None:
    held = s.stages[0][rank]

    def fits(full: int, listed: int) -> bool:
        return _need(s, cluster, rank, full, listed, cheap) <= available

    if not fits(held, held):
        return None
    full = _least(held, lambda count: fits(count, held))
    return full, (held if full else _least(held, lambda count: fits(0, count))) if cheap else 0


def _least(most: int, enough: Callable[[int], bool]) -> int:
    """The smallest sufficient count, if the largest count is sufficient."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def _need(s: Shape, cluster: Cluster, rank: int, full: int, listed: int, cheap: frozenset[str]) -> float:
    """Bytes that a stage needs. full: the number of fully recomputed layers; listed: the number of layers that
    recompute the cheap operators, including the fully recomputed ones."""
    counts, beyond = (
        tuple(count if other == rank else 0 for other in range(s.pipeline)) for count in (full, max(listed - full, 0))
    )
    operators = ((tuple(sorted(cheap)), (beyond,)),) if cheap else ()
    one = replace(s, recompute="full" if full else "none", method=None, full_layers=(counts,), operators=operators)
    return float(stage(one, rank, cluster).required)


def seconds(s: Shape, cluster: Cluster, t: Traits = Traits()) -> float:
    """A step of an exact layout; without a named device, one similar to an A100 is assumed."""
    return float(timed(s, t, machine(cluster)).step.seconds)


_KEYS = ("tensor", "context", "expert", "expert_tensor", "sequence_parallel")


def required(space: Space, columns: Columns, cluster: Cluster) -> Any:
    """Bytes that the worst of the first and last rank needs on the device, per candidate."""
    facts = _facts(space, columns)
    first = _rank(space, columns, facts, first=True)
    last = _rank(space, columns, facts, first=False)
    allocated = np.maximum(first, last)
    margin = device_need.MARGIN_EXPERTS if space.shape.experts else device_need.MARGIN_DENSE
    lone = replace(space.shape, tensor=1, pipeline=1, context=1, data=1, expert=1, expert_tensor=1)
    context = sum(term.high for term in device_need.device_terms(lone, cluster, 0.0))
    pair = sum(term.high for term in device_need.device_terms(replace(lone, data=2), cluster, 0.0))
    degrees = ("tensor", "pipeline", "context", "data", "expert", *(("expert_tensor",) if space.shape.experts else ()))
    groups = sum((columns[name] > 1).astype(np.int64) for name in degrees)
    return allocated * device_need.SLACK * margin + context + groups * (pair - context)


def listed_bytes(space: Space, columns: Columns) -> Any:
    """Bytes of cheap outputs that one layer keeps per micro-batch."""
    return _facts(space, columns)["cheap"] * columns["micro"]


def _facts(space: Space, columns: Columns) -> dict[str, Any]:
    """Per candidate: values that depend only on how a layer is split, for a micro-batch of one sample."""
    code = np.zeros(len(columns["tensor"]), dtype=np.int64)
    for name in _KEYS:
        code = code * (int(columns[name].max(initial=0)) + 1) + columns[name]
    _, first, index = np.unique(code, return_index=True, return_inverse=True)
    found = [_layer_facts(space, tuple(int(columns[name][row]) for name in _KEYS)) for row in first]
    return {name: np.array([fact[name] for fact in found])[index.reshape(-1)] for name in found[0]}


def _layer_facts(space: Space, key: tuple[int, ...]) -> dict[str, float]:
    tensor, context, expert, expert_tensor, sequence_parallel = key
    s = replace(
        space.shape, tensor=tensor, context=context, expert=expert, expert_tensor=expert_tensor,
        sequence_parallel=bool(sequence_parallel), micro=1
    )  # fmt: skip
    layers = sum(map(sum, s.stages))
    routed = sum(s.experts.layers[:layers]) / layers if s.experts and layers else 0.0
    dense, expert_parameters = parameters.layers(replace(s, pipeline=1, stages=((layers,),)), 0, layers)
    facts = {"dense": dense / layers, "experts": expert_parameters / layers, "table": s.vocab * s.hidden / tensor}
    for mode in RECOMPUTE[:2]:
        gone = space.selected if mode == "selective" else frozenset()
        one = replace(s, recompute=mode, modules=modules(s, gone) if mode == "selective" else frozenset())
        facts[mode] = sum(activations.layer(one, False, gone).values()) * (1 - routed)
        facts[mode] += sum(activations.layer(one, True, gone).values()) * routed if routed else 0.0
    facts["full"] = activations.layer_input(s)
    facts["cheap"] = sum(
        size for name, size in activations.layer(replace(s, recompute="none"), False).items() if name in space.cheap
    )
    facts["listed"] = facts["none"] - facts["cheap"]
    facts["head"] = sum(term.high for term in peak.loss_terms(s))
    facts["output backward"] = peak.logits_gradient(s)
    facts["backward"] = peak.backward(
        replace(s, recompute="none", full_layers=None, pipeline=1, stages=((layers,),)), 0
    )
    return facts


def _rank(space: Space, columns: Columns, facts: dict[str, Any], *, first: bool) -> Any:
    """Allocated bytes at the peak of the first or last rank."""
    s = space.shape
    layers = sum(map(sum, s.stages))
    p, v, micro = columns["pipeline"], columns["virtual"], columns["micro"]
    per_rank = np.ceil(layers / p)
    tables = np.where(p == 1, 1 if s.tied else 2, 1)
    steady = _steady(s, columns, facts["dense"] * per_rank, facts["experts"] * per_rank, facts["table"] * tables)
    rank = 0 if first else p - 1
    warm_up = np.minimum(columns["micro_batches"] * v, np.where(v > 1, 2 * (p - rank - 1) + (v - 1) * p + 1, p - rank))
    if s.splits > 1:  # parts of a sequence
        warm_up = np.minimum(columns["micro_batches"], (s.splits + p - rank - 1) / s.splits) * v
    kept = np.select(
        [columns["recompute"] == i for i in (0, 1, LISTED)],
        [facts[name] for name in ("none", "selective", "listed")],
        facts["full"],
    )
    alive = warm_up * (per_rank / v) * kept * micro
    again = [np.zeros_like(facts["none"]), facts["none"] - facts["selective"], facts["cheap"]]
    whole = np.select([columns["recompute"] == i for i in (0, 1, LISTED)], again, facts["none"])
    backward = (facts["backward"] + whole) * micro
    moment = backward if first else np.maximum(facts["head"] * micro, backward)
    moment = np.where(p == 1, np.maximum(facts["head"] * micro, backward), moment)
    return steady + alive + moment + static_memory.fixed(s)


def _steady(s: Shape, columns: Columns, dense: Any, experts: Any, tables: Any) -> Any:
    """Weights, gradients and optimizer states, sharded as in the plan, over the candidate's ranks."""
    shards = columns["data"] * columns["context"] if s.zero else np.ones_like(columns["data"])
    grid = columns["expert_tensor"] * columns["expert"] * columns["pipeline"]
    world = columns["data"] * columns["tensor"] * columns["pipeline"] * columns["context"]
    expert_shards = np.maximum(world // grid, 1) if s.zero else np.ones_like(shards)
    n = Parameters(1.0, 0.0, 0.0, 0.0, frozen=bool(s.adapters))
    one = replace(s, shards=1, expert_shards=1)
    whole = {term.name: term.high for term in static_memory.steady_terms(one, n)}
    of_weights = 1 if s.weights_sharded else 3
    level = {"weights": of_weights, "reference model": of_weights, "gradients": 2}
    total = np.zeros(len(shards))
    for name, size in whole.items():
        sharded = s.zero >= level.get(name, 1)
        total = total + size * (
            (dense + tables) / (shards if sharded else 1) + experts / (expert_shards if sharded else 1)
        )
    return total
