"""What is counted where a size of a plan is not known: the least and the most that it can be.

Two plans come of it, one that needs the least memory and one that needs the most; `None` for the most where there is
no end to it, as with a micro batch that nobody says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from preflight.memory.requirements import MOST, Missing, not_known, open_names
from preflight.run.plan import Plan
from preflight.run.value import Origin, Value, default
from preflight.source.record import NamedTuple, replace

LARGEST_VOCABULARY = 262_208
"""Rows of the largest vocabulary that a language model is published with (Gemma 3, config.json `vocab_size`)."""
MANY = 1 << 20
ENDLESS = object()


class Range(NamedTuple):
    """The values of a plan at both ends; ENDLESS in `most` where there is no end."""

    least: Mapping[str, object]
    most: Mapping[str, object]


class Ranged(NamedTuple):
    """A plan between two ends. most: None where nothing bounds it. taken: what was not known, in words."""

    least: Plan
    most: Plan | None
    taken: tuple[str, ...]


_WHOLE = {"recompute.mode": "full", "recompute.method": "uniform", "recompute.layers": MANY}
_NO_LAYER = {
    "recompute.full_layers": None,
    "recompute.operators": (),
    "recompute.modules": (),
    "recompute.shared": False,
}
_RECOMPUTED = Range(
    {**_WHOLE, **_NO_LAYER, "recompute.doubtful": (), "recompute.repeated": ()},
    {"recompute.mode": "none", "recompute.method": None, "recompute.layers": 0, **_NO_LAYER}
    | {"recompute.doubtful": (), "recompute.repeated": ()},
)


def _one(name: str, least: object, most: object) -> tuple[str, Range]:
    return name, Range({name: least}, {name: most})


_RANGES: dict[str, Range] = dict(
    (
        _one("model.vocab", 1, LARGEST_VOCABULARY),
        _one("batch.count", 1, MANY),
        _one("batch.micro", 1, ENDLESS),
        _one("model.sequence", 1, ENDLESS),
        _one("model.ffn", 1, ENDLESS),
        _one("model.expert_ffn", 1, ENDLESS),
        _one("model.top_k", 1, ENDLESS),
        _one("model.query_groups", 1, ENDLESS),
        _one("model.tied", True, False),
        _one("model.capacity", 1e-6, None),
        _one("model.cross_entropy", "te", "native"),
        _one("model.attention", "flash", "unfused-fp32"),
        _one("layout.sequence_parallel", True, False),
        _one("model.lora_targets", ("query",), ()),
        _one("model.streams", None, ENDLESS),
        _one("model.pair_bias", None, (1, 2, 1)),
        _one("optimizer.shards", MOST, 1),
        _one("optimizer.expert_shards", MOST, 1),
        _one("optimizer.zero", 1, 0),
        _one("optimizer.name", "lomo", "adam"),
        _one("optimizer.offload", 1.0, 0.0),
        _one("optimizer.swapped", MANY, 0),
        _one("recompute.offload", True, False),
        _one("batch.varying", True, False),
        _one("batch.pairs", False, True),
        _one("colocated.reference", 0, 1),
        _one("colocated.rollout", 0.0, 0.9),
        _one("colocated.asleep", True, False),
        _one("precision.parameters", "bf16", "fp32"),
        _one("precision.gradients", "bf16", "fp32"),
        _one("precision.master", None, "fp32"),
        _one("precision.states", "fp8", "fp32"),
        _one("precision.second", "fp8", "fp32"),
        _one("precision.fp8_parameters", True, False),
        ("layout.data", Range({"layout.data": 1}, {"layout.data": 2})),
        *((f"recompute.{n}", _RECOMPUTED) for n in ("mode", "method", "layers", "shared", "full_layers", "modules")),
        *((f"recompute.{n}", _RECOMPUTED) for n in ("operators", "doubtful")),
    )
)
"""What each may be. Data parallel alone decides nothing but whether there is another group of ranks: what is shared
over data ranks are the shards, which are unknown with it."""


def ranged(plan: Plan) -> Ranged:
    """The plan with every unknown that has ends at its least and at its most. Raises Missing for one that has none."""
    values = plan.values()
    names = open_names(values)
    if not names:
        return Ranged(plan, plan, ())
    least: dict[str, object] = {}
    most: dict[str, object] = {}
    taken = []
    stated = {bound.name: bound for bound in plan.bounds}
    for name in names:
        bound, found = stated.get(name), _RANGES.get(name)
        if bound is not None:
            found = Range({name: bound.least}, {name: bound.most})
        if found is None:
            raise Missing(not_known(name, values[name]))
        least, most = {**found.least, **least}, {**found.most, **most}
        taken.append(not_known(name, values[name]) + _between(name, found) + (f": {bound.how}" if bound else ""))
    if "optimizer.shards" in names and "layout.data" in names:
        taken = [words for words in taken if "shards" not in words]
    endless = any(value is ENDLESS for value in most.values())
    high = None if endless else changed(plan, most)
    return Ranged(changed(plan, least), high, tuple(taken))


def _between(name: str, found: Range) -> str:
    """The ends in words, where they are numbers that a reader would want."""
    least, most = found.least.get(name), found.most.get(name)
    numbers = all(isinstance(end, int) and not isinstance(end, bool) and end < MANY for end in (least, most))
    return f"; {least:,} to {most:,} counted" if numbers and name == "model.vocab" else ""


def without_assumed(plan: Plan) -> Plan:
    """The plan in which nothing is known from a published name or from habit."""
    lost: dict[str, Value] = {
        name: value.unassumed() for name, value in plan.values().items() if value.origin is Origin.ASSUMED
    }
    return with_values(plan, lost) if lost else plan


def changed(plan: Plan, values: Mapping[str, object]) -> Plan:
    """A plan with other values, by their dotted names."""
    return with_values(plan, {name: default(raw) for name, raw in values.items()})


def with_values(plan: Plan, values: Mapping[str, Value]) -> Plan:
    """A plan with other values, by their dotted names, with where they come from."""
    parts: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        part, _, field = name.partition(".")
        parts.setdefault(part, {})[field] = value
    return replace(plan, **{part: replace(getattr(plan, part), **fields) for part, fields in parts.items()})
