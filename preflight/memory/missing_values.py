"""The values that a plan must state before memory can be estimated, and the bounds of a missing size."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.run.training_plan import Plan
from preflight.run.value import Origin, Value, default
from preflight.source.record import NamedTuple, replace
from preflight.source.resolved_words import Reason, needed
from preflight.source.typing_without_import import Any

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "nf4": 0.5625, "none": 0}
"""Bytes per element of a number type. NF4: 4 bits, and an fp32 scale for each 64 (Dettmers et al. 2023, arXiv
2305.14314)."""


class Missing(Exception):
    """A number needed by the estimate is unknown; because names it and the reason."""

    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because


_REQUIRED = {
    "layout.stages": "layers per stage",
    "model.hidden": "hidden size",
    "model.heads": "attention heads",
    "model.vocab": "vocabulary size",
    "model.sequence": "sequence length",
    "layout.tensor": "tensor-parallel size",
    "layout.pipeline": "pipeline-parallel size",
    "layout.context": "context-parallel size",
    "layout.data": "data-parallel size",
    "batch.micro": "micro batch size",
    "precision.parameters": "parameter precision",
    "optimizer.name": "optimizer",
}

_DECIDING = {
    "model.experts": "number of experts",
    "model.latent": "attention type",
    "model.attention": "attention backend",
    "model.lora_targets": "set of adapters",
    "recompute.mode": "recomputation",
    "recompute.full_layers": "recomputed layers per stage",
    "layout.sequence_parallel": "use of sequence parallel",
    "layout.tensor_x": "shape of the 2-D tensor parallel group",
    "layout.expert": "expert-parallel size",
    "layout.schedule": "pipeline schedule",
    "batch.count": "number of micro-batches",
    "optimizer.zero": "optimizer sharding",
    "optimizer.shards": "number of optimizer shards",
    "model.ffn": "intermediate size",
    "model.query_groups": "number of query groups",
    "model.head_dim": "head size",
    "model.tied": "embedding sharing",
    "batch.pairs": "sample type",
    "batch.varying": "sample length",
    "recompute.method": "recomputation method",
    "recompute.layers": "number of recomputed layers",
    "recompute.shared": "meaning of the recomputed layers",
    "recompute.modules": "set of recomputed modules",
    "recompute.operators": "set of recomputed operators",
    "recompute.doubtful": "set of swapped operators",
    "recompute.offload": "activation offloading",
    "precision.gradients": "gradient precision",
    "precision.master": "master weight precision",
    "precision.states": "optimizer state precision",
    "precision.second": "second moment precision",
    "precision.fp8_parameters": "gathered weight precision",
    "optimizer.offload": "optimizer offloading",
    "optimizer.swapped": "optimizer swapping",
    "optimizer.fsdp": "use of fully sharded data parallelism",
    "colocated.reference": "reference model placement",
    "colocated.rollout": "share of the device that the rollout engine takes",
    "colocated.asleep": "rollout engine sleep during training",
    "model.cross_entropy": "loss kernel",
    "model.streams": "number of residual streams",
    "model.pair_bias": "bias of attention",
}
"""Values that a dialect may omit, but that must not be guessed if it gives a reason why they are unknown."""

_OF_EXPERTS = {
    "model.top_k": "number of experts per token",
    "model.expert_ffn": "experts' intermediate size",
    "model.expert_layers": "expert layer placement",
    "model.capacity": "expert capacity",
    "layout.expert_tensor": "expert-tensor-parallel size",
    "layout.extended": "expert layout",
    "optimizer.expert_shards": "number of optimizer shards of the experts",
}
"""The same if there are experts."""

_WORDS = {
    **_REQUIRED,
    "model.query_groups": "number of query groups",
    "model.head_dim": "head size",
    "model.ffn": "intermediate size",
    "layout.expert": "expert-parallel size",
    "layout.expert_tensor": "expert-tensor-parallel size",
    "layout.tensor_x": "width of the 2-D tensor parallel group",
    "model.gate_kept": "number of tensors that the gate keeps",
    "layout.exchanged": "ranks that exchange heads",
    "layout.group": "micro-batches per group",
    "layout.sequence_splits": "parts of a sequence",
    "batch.count": "number of micro-batches",
    "optimizer.shards": "optimizer shards",
    "optimizer.expert_shards": "optimizer shards of the experts",
    "model.top_k": "experts per token",
    "model.expert_ffn": "experts' intermediate size",
    "model.positions": "positions",
    "model.experts": "number of experts",
    "model.mtp": "multi-token-prediction layers",
    "model.shared_ffn": "shared experts' intermediate size",
    "recompute.layers": "recomputed layers",
    "model.lora_rank": "rank of the adapters",
    "layout.deferred": "deferred micro-batches",
    "model.kv_lora_rank": "compressed key-value rank",
    "model.q_lora_rank": "rank of the compressed queries",
    "model.qk_nope_dim": "head size without position",
    "model.qk_rope_dim": "head size with position",
    "model.v_dim": "head size of values",
}
_PLURAL = ("layers per stage", "attention heads", "recomputed layers per stage")
_MAY_BE_0 = (
    "model.gate_kept",
    "layout.exchanged",
    "layout.deferred",
    "model.positions",
    "model.experts",
    "model.mtp",
    "model.shared_ffn",
    "recompute.layers",
)
_NO_SIZE = ("layout.stages", "precision.parameters", "optimizer.name")
MOST = 1 << 48  # no size of a run is larger; a float stays exact
MOST_LAYERS = 100_000
MOST_CHUNKS = 4096


def verify(values: Mapping[str, Value]) -> None:
    """Raises Missing for unknown values and invalid sizes."""
    for name in open_names(values):
        raise Missing(not_known(name, values[name]))
    _sizes(values)
    _stages(values)


def open_names(values: Mapping[str, Value]) -> tuple[str, ...]:
    """The unknown values that the estimate needs, by name."""
    deciding = (*_DECIDING, *(_OF_EXPERTS if _raw(values, "model.experts") else ()))
    packed = ("batch.micro", "model.sequence") if _raw(values, "batch.packed") else ()
    return (
        *(n for n in _REQUIRED if n not in packed and (not values[n].known or values[n].raw is None)),
        *(name for name in deciding if values[name].because.removeprefix("not given")),
    )


def not_known(name: str, value: Value) -> str:
    """The statement that a value is unknown, and why."""
    words, why = {**_REQUIRED, **_DECIDING, **_OF_EXPERTS}[name], value.because
    said = f"the {words} {'are' if words in _PLURAL else 'is'} unknown"
    return said if not why or why == said else Reason(f"{said} ({why})", needed(why))


def _raw(values: Mapping[str, Value], name: str) -> Any:
    return values[name].raw if values[name].known else None


def _sizes(values: Mapping[str, Value]) -> None:
    """Sizes must be positive integers (counts of optional parts at least 0): rules report violations, and
    nothing is estimated here."""
    for name, words in _WORDS.items():
        size = _raw(values, name)
        if name in _NO_SIZE or size is None:
            continue
        if isinstance(size, bool) or not isinstance(size, int) or not int(name not in _MAY_BE_0) <= size <= MOST:
            raise Missing(f"{words}: {size!r} is not a valid size")
    if _raw(values, "precision.parameters") not in BYTES or any(
        _raw(values, f"precision.{name}") not in (None, *BYTES) for name in ("gradients", "master", "states", "second")
    ):
        raise Missing("a precision is unknown")


def _stages(values: Mapping[str, Value]) -> None:
    """Every pipeline rank has a number of layers in every chunk; recomputed layers are given for the same ranks."""
    stages, pipeline, full = (
        _raw(values, name) for name in ("layout.stages", "layout.pipeline", "recompute.full_layers")
    )
    held = [count for row in stages for count in row]
    if (
        not held
        or any(len(row) != pipeline for row in stages)
        or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in held)
    ):
        raise Missing("the layers per stage do not cover the pipeline stages")
    if not 0 < sum(held) <= MOST_LAYERS or len(held) > MOST_CHUNKS:
        raise Missing(f"{sum(held)} layers in {len(held)} parts are not a usable model")
    if full is not None and [len(row) for row in full] != [len(row) for row in stages]:
        raise Missing("the recomputed layers per stage do not cover the pipeline stages")


LARGEST_VOCABULARY = 262_208
"""Rows of the largest published vocabulary of a language model (Gemma 3, config.json `vocab_size`)."""
MANY = 1 << 20
ENDLESS = object()


class Range(NamedTuple):
    """The values of a plan at both bounds; ENDLESS in `most` if there is no bound."""

    least: Mapping[str, object]
    most: Mapping[str, object]


class Ranged(NamedTuple):
    """A plan between two bounds. most: None if it is unbounded. taken: the unknown values, in words."""

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
"""The bounds of each. Data parallelism alone only decides whether there is another group of ranks: the shards over data
ranks are unknown with it."""


def ranged(plan: Plan) -> Ranged:
    """The plan with every bounded unknown at its minimum and at its maximum. Raises Missing for an unbounded one."""
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
    """The bounds in words, if they are useful numbers for readers."""
    least, most = found.least.get(name), found.most.get(name)
    numbers = all(isinstance(end, int) and not isinstance(end, bool) and end < MANY for end in (least, most))
    return f"; {least:,} to {most:,} counted" if numbers and name == "model.vocab" else ""


def without_assumed(plan: Plan) -> Plan:
    """The plan without values assumed from published names or habits."""
    lost: dict[str, Value] = {
        name: value.unassumed() for name, value in plan.values().items() if value.origin is Origin.ASSUMED
    }
    return with_values(plan, lost) if lost else plan


def changed(plan: Plan, values: Mapping[str, object]) -> Plan:
    """A plan with other values, by their dotted names."""
    return with_values(plan, {name: default(raw) for name, raw in values.items()})


def with_values(plan: Plan, values: Mapping[str, Value]) -> Plan:
    """A plan with other values, by their dotted names, with their origin."""
    parts: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        part, _, field = name.partition(".")
        parts.setdefault(part, {})[field] = value
    return replace(plan, **{part: replace(getattr(plan, part), **fields) for part, fields in parts.items()})
