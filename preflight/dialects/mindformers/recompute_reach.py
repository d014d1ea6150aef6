"""The effect of each recompute pattern of a run: its operators, the number of layers, and the freed bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from preflight.dialects.mindformers.graph_namespace import any_starts
from preflight.dialects.mindformers.layer_operators import Layers, layers
from preflight.dialects.mindformers.recompute import EXCLUDING, Item, Run, Stages, active_layers, items, stages
from preflight.dialects.mindformers.recompute_patterns import Cell, match, plain
from preflight.loaders.document import Document
from preflight.run.arguments import Arguments
from preflight.run.training_plan import Plan
from preflight.run.value import derived, known
from preflight.source.record import NamedTuple, replace

Counts = tuple[tuple[int, ...], ...]
Rows = tuple[tuple[tuple[str, ...], Counts], ...]

# fmt: off
_FREED: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (("attention_norm.norm", "input_layernorm.norm"),
        ("attention_norm.rcast", "input_layernorm.rcast", "input_layernorm.cast"), ("norm 1 output",)),
    (("ffn_norm.norm", "pre_mlp_layernorm.norm"),
        ("ffn_norm.rcast", "pre_mlp_layernorm.rcast", "pre_mlp_layernorm.cast"), ("norm 2 output",)),
    (("attention_norm", "input_layernorm"), (), ("norm 1 output",)),
    (("ffn_norm", "pre_mlp_layernorm", "post_attention_layernorm"), (), ("norm 2 output",)),
    (
        ("attention.flash_attention", "attention.flash_attention.flash_attention", "self_attention.core_attention",
            "self_attention.flash_attention"),
        (),
        ("attention output", "softmax statistics"),
    ),
    (("feed_forward.w1",), (), ("gate output", "gate activation")),
    (("feed_forward.w3",), (), ("up output",)),
    (("feed_forward.w1.matmul",), ("feed_forward.w1.reshape",), ("gate output",)),
    (("feed_forward.w3.matmul",), ("feed_forward.w3.reshape",), ("up output",)),
    (("feed_forward.w_gate_hidden", "mlp.linear_fc1", "mlp.dense_h_to_4h"), (),
        ("fc1 output", "gate output", "up output")),
    (("feed_forward.w1.activation.silu", "feed_forward.w1.activation"), ("feed_forward.w1.reshape",),
        ("gate activation",)),
    (("feed_forward.mul",), ("feed_forward.w2.reshape",), ("activation output",)),
    (("feed_forward.activate.silu", "feed_forward.activate", "mlp.activation_func.silu", "mlp.activation_func"), (),
        ("gate activation",)),
    (("mlp.mul",), (), ("activation output",)),
    (("feed_forward", "mlp"), (), ("fc1 output", "gate output", "up output", "gate activation", "activation output")),
)


_REPEATED: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("query", ("attention.wq", "attention.wq.matmul"), ()),
    ("key", ("attention.wk", "attention.wk.matmul"), ()),
    ("value", ("attention.wv", "attention.wv.matmul"), ()),
    ("qkv", ("attention.w_qkv", "attention.w_qkv.matmul", "self_attention.linear_qkv",
        "self_attention.linear_qkv.matmul"), ()),
    ("scores",
        ("attention.flash_attention", "attention.flash_attention.flash_attention", "self_attention.core_attention"),
        ()),
    ("projection", ("attention.wo", "attention.wo.matmul", "self_attention.linear_proj",
        "self_attention.linear_proj.matmul"), ("add",)),
    ("gate", ("feed_forward.w1", "feed_forward.w1.matmul", "feed_forward"), ()),
    ("up", ("feed_forward.w3", "feed_forward.w3.matmul", "feed_forward"), ()),
    ("fc1", ("feed_forward.w_gate_hidden", "feed_forward.w_gate_hidden.matmul", "mlp.linear_fc1",
        "mlp.linear_fc1.matmul", "mlp"), ()),
    ("fc2", ("feed_forward.w2", "feed_forward.w2.matmul", "mlp.linear_fc2", "mlp.linear_fc2.matmul"), ("add",)),
)
# fmt: on
"""Recomputed matrix work: its paths, and what else must be recomputed for it to be needed (a sum needs its
summands)."""


def repeats(reached: Iterable[tuple[tuple[str, ...], Counts]]) -> tuple[tuple[str, Counts], ...]:
    """From the matches of patterns to the recomputed matrix work, with its layers."""
    where = _where(reached)
    found = []
    for name, paths, needed in _REPEATED:
        here, beside = _any(where, paths), _any(where, needed)
        if here is not None and not needed:
            found.append((name, here))
        elif here is not None and beside is not None:
            found.append((name, _both(here, beside)))
    return tuple(found)


def rows(reached: Iterable[tuple[tuple[str, ...], Counts]], *, interleaved: bool = False) -> Rows:
    """From the matches of patterns (paths, layers by chunk and stage) to outputs that are not kept, with their layers.
    interleaved: there are no reshapes between linears and their neighbours.
    """
    where = _where(reached)
    found = []
    for first, second, names in _FREED:
        here, beside = _any(where, first), _any(where, second)
        if here is not None and (not second or (interleaved and "reshape" in second[0])):
            found.append((names, here))
        elif here is not None and beside is not None:
            found.append((names, _both(here, beside)))
    return tuple(found)


def _where(reached: Iterable[tuple[tuple[str, ...], Counts]]) -> dict[str, Counts]:
    """The layers of every path."""
    where: dict[str, Counts] = {}
    for paths, counts in reached:
        for path in map(plain, paths):
            where[path] = _most(where[path], counts) if path in where else counts
    return where


def _any(where: dict[str, Counts], paths: tuple[str, ...]) -> Counts | None:
    found: Counts | None = None
    for path in paths:
        if path in where:
            found = where[path] if found is None else _most(found, where[path])
    return found


def _both(one: Counts, other: Counts) -> Counts:
    return tuple(tuple(map(min, *pair)) for pair in zip(one, other, strict=True))


def _most(one: Counts, other: Counts) -> Counts:
    return tuple(tuple(map(max, *pair)) for pair in zip(one, other, strict=True))


_HALF = 2  # bytes of a 16-bit activation
# fmt: off
_WIDE = ("w1", "w3", "mul", "activation", "activate", "silu", "w_gate_hidden", "dense_h_to_4h", "dense_left",
    "dense_right", "linear_fc1", "activation_func")
# fmt: on
_NORMS = (
    "norm",
    "rcast",
    "add",
    "attention_norm",
    "ffn_norm",
    "input_layernorm",
    "post_attention_layernorm",
    "pre_mlp_layernorm",
)
_PROJECTIONS = ("wq", "flash_attention", "merger_head_transpose")


def saved(path: str, plan: Plan) -> int | None:
    """Bytes per layer and micro-batch that stay in memory without the pattern; None if the shape is unusual or
    unknown."""
    if plan.model.experts.raw not in (None, 0, 1):
        return None
    values = known(plan.model.sequence, plan.batch.micro, plan.model.hidden, plan.layout.tensor, plan.layout.context)
    if values is None or not all(isinstance(n, int) and n > 0 for n in values):
        return None
    sequence, micro, hidden, tensor, context = values
    width = _width(plain(path).split("."), plan, hidden, tensor)
    return None if width is None else round(_HALF * sequence * micro * width / context)


def _width(parts: list[str], plan: Plan, hidden: int, tensor: int) -> float | None:
    """Columns of the operator's output on one rank."""
    if parts[0] in ("feed_forward", "mlp") and len(parts) > 1 and parts[1] in _WIDE:
        ffn = known(plan.model.ffn)
        doubled = 2 if parts[1] in ("w_gate_hidden", "dense_h_to_4h", "linear_fc1") else 1
        return doubled * ffn[0] / tensor if ffn and isinstance(ffn[0], int) else None
    if parts[-1] in _NORMS and parts[0] in _NORMS:
        return hidden / tensor if plan.layout.sequence_parallel.raw is True else hidden
    return hidden / tensor if len(parts) > 1 and parts[1] in _PROJECTIONS else None


class Reach(NamedTuple):
    """One pattern: its setting, the paths that it matches, and the layers by chunk and stage where it matches one."""

    setting: str
    pattern: str
    paths: tuple[str, ...]
    counts: Stages


class _Read(NamedTuple):
    documents: tuple[Document, ...]
    arguments: Arguments
    plan: Plan


def with_patterns(documents: tuple[Document, ...], arguments: Arguments, plan: Plan) -> Plan:
    """The plan with effective recompute patterns, each with its layers by chunk and stage."""
    if not any_starts(arguments.written, "recompute_config.select"):
        return plan
    run = _Read(documents, arguments, plan)
    reached = tuple(one for one in reaches(run) if one.setting == "select_recompute" and one.paths)
    if not reached:
        written = tuple(_as_written(run))
        found, again = (
            derived(rows(written, interleaved=True), "select_recompute, as it is written"),
            derived(repeats(written)),
        )
        return replace(plan, recompute=replace(plan.recompute, operators=found, repeated=again)) if found.raw else plan
    operators = derived(rows((one.paths, one.counts) for one in reached), "memory that their recomputation frees")
    again = derived(repeats((one.paths, one.counts) for one in reached), "matrix products that run again")
    return replace(plan, recompute=replace(plan.recompute, operators=operators, repeated=again))


def _as_written(run: Run) -> Iterator[tuple[tuple[str, ...], Stages]]:
    """Patterns interpreted as paths if the model's operators are unknown, with the layers that they apply to."""
    layout, found = stages(run), layers(run.arguments, run.plan)
    hidden = found is None or any(cell.opaque for kind in found.kinds for cell in kind.cells)
    for item in items(run) if layout is not None and hidden else ():
        here = active_layers(run, item) if item.setting == "select_recompute" else None
        if here and layout is not None:
            yield (item.pattern,), _by_stage(set(here), layout)


def reaches(run: Run) -> Iterator[Reach]:
    """The reach of every pattern; empty if the operators or the stages of the model are unknown."""
    layout, found = stages(run), layers(run.arguments, run.plan)
    if layout is None or found is None:
        return
    for item in items(run):
        here = active_layers(run, item)
        if here is not None:
            yield _reach(item, here, layout, found)


def _reach(item: Item, here: frozenset[int], layout: Stages, found: Layers) -> Reach:
    by_kind: dict[int, list[str]] = {}  # a model has few kinds of layers, but may have many layers
    paths: dict[str, None] = {}
    hit: set[int] = set()
    for layer in here:
        for kind in found.kind(layer):
            if id(kind) not in by_kind:
                by_kind[id(kind)] = _paths(item, kind)
                paths.update(dict.fromkeys(by_kind[id(kind)]))
            if by_kind[id(kind)]:
                hit.add(layer)
    return Reach(item.setting, item.pattern, tuple(paths), _by_stage(hit, layout))


def _paths(item: Item, kind: Cell) -> list[str]:
    """The names that a pattern matches in a kind of layer, conditional operators only if there are no others."""
    operators_only = "comm" in item.setting or item.setting in EXCLUDING
    hits = [one for one in match(item.pattern, kind).hits if not (operators_only and one.cell)]
    return [one.path for one in hits if not one.conditional] or [one.path for one in hits]


def _by_stage(hit: set[int], layout: Stages) -> Stages:
    """Layers counted by chunk and stage; ids run stage by stage within a chunk."""
    counts, start = [], 0
    for row in layout:
        line = []
        for held in row:
            line.append(sum(layer in hit for layer in range(start, start + held)))
            start += held
        counts.append(tuple(line))
    return tuple(counts)
