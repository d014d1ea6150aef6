"""What a stage computes a second time: whole layers, modules of a layer, single operators."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.memory import activations, flops
from preflight.memory.shape import Shape
from preflight.steptime.arithmetic import Number
from preflight.steptime.layer import ATTENTION, DISPATCH, EXPERT, EXPERTS, MATRIX, MOVES
from preflight.steptime.machine import Machine
from preflight.steptime.operators import Both

PASSES = 3
"""An operator that runs again reads its inputs and writes its output: about three times the size of what it makes."""
MODULES: Mapping[str, Mapping[str, float]] = {
    "core_attn": {ATTENTION: 1.0},
    "layernorm": {MOVES: 0.3},
    "moe_act": {DISPATCH: 0.2},
    "mla_up_proj": {MATRIX: 0.25},
    "mlp": {MATRIX: 0.65, MOVES: 0.3},
    "moe": {EXPERTS: 1.0, DISPATCH: 1.0, EXPERT: 1.0},
    "shared_experts": {MATRIX: 0.2},
}
"""What a module's forward pass is of the parts of its layer."""


def modules_again(modules: frozenset[str], parts: Mapping[str, Both]) -> Number:
    """Forward seconds of modules that are recomputed."""
    return sum(
        parts[name].forward * share
        for module in modules
        for name, share in MODULES.get(module, {}).items()
        if name in parts
    )


def full_layers(s: Shape, rank: int) -> int:
    """Layers of a rank that are recomputed as a whole."""
    if s.full_layers is not None:
        return sum(row[rank] for row in s.full_layers)
    held = sum(row[rank] for row in s.stages)
    if s.recompute != "full":
        return 0
    if s.method != "block":
        return held
    return min(held, s.recompute_layers * (1 if s.recompute_shared else s.virtual))


def operators_again(s: Shape, m: Machine, rank: int) -> float:
    """Seconds of single operators that a stage runs again: products at their rate, the others by their bytes."""
    work = sum(_work(s, name) * _left(s, counts, rank) for name, counts in s.repeated) * s.tokens / s.tensor
    kept = activations.layer(s, False)
    products = {name for name, _ in s.repeated}
    size = sum(
        PASSES * kept.get(name, 0.0) * _left(s, counts, rank)
        for names, counts in s.operators
        for name in names
        if _MADE_BY.get(name) not in products
    )
    return work / m.sustained("") + size / m.memory


def _left(s: Shape, counts: tuple[tuple[int, ...], ...], rank: int) -> int:
    """Layers of a rank in which an operator runs again, those aside that do as a whole."""
    whole = [row[rank] for row in s.full_layers] if s.full_layers is not None else [0] * s.virtual
    return sum(min(counts[v][rank], s.stages[v][rank] - whole[v]) for v in range(s.virtual))


def _work(s: Shape, name: str) -> float:
    """Forward operations per token of one linear, or of the scores."""
    if name == "scores":
        return flops.layer_forward(s, False)[1] / 2
    heads, groups = s.heads * s.head_dim, s.groups * s.head_dim
    wide = {"query": heads, "key": groups, "value": groups, "qkv": heads + 2 * groups, "projection": heads}
    return 2.0 * s.hidden * wide.get(name, s.ffn * (s.projections if name == "fc1" else 1))


_MADE_BY = {
    "gate output": "gate",
    "up output": "up",
    "fc1 output": "fc1",
    "attention output": "scores",
    "softmax statistics": "scores",
}
"""Kept outputs of matrix work: running that again is counted in operations."""
