"""Seconds of one decoder layer and one micro-batch on one device: attention, experts, recomputation."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.memory import activations, flops
from preflight.memory.inputs_from_plan import Shape
from preflight.source.record import NamedTuple
from preflight.steptime.achieved_rates import Machine
from preflight.steptime.collectives import Group, exchanged, gathered
from preflight.steptime.elementwise_math import Number, chosen, greater
from preflight.steptime.layout_and_plan_traits import Spread, Traits
from preflight.steptime.operators import (
    NONE,
    Both,
    delta_rule,
    fused_attention,
    indexer,
    linear_projections,
    moved,
    product,
)


class Routed(NamedTuple):
    """Seconds of a routed MLP."""

    products: Both
    routing: Both
    exchange: Both


def routed_mlp(s: Shape, t: Traits, w: Spread, m: Machine) -> Routed:
    """Tokens are sent to their experts and back; each rank computes the products of its experts."""
    assert s.experts is not None
    e = s.experts
    split = s.sequence * w.micro / w.context / chosen(w.sequence_parallel > 0, w.tensor, 1)
    copies = split * e.top_k  # tokens, counted once per expert
    here = copies * w.expert_tensor  # after the expert's tensor-parallel ranks have gathered them
    local = e.count / w.expert
    rows = here / local
    trained = not s.adapters
    into = product(m, rows, s.hidden, s.projections * e.ffn / w.expert_tensor, t.recipe, trained)
    out = product(m, rows, e.ffn / w.expert_tensor, s.hidden, t.recipe, trained)
    products = into.plus(out) * local
    gate = 2.0 * here * e.ffn / w.expert_tensor * (s.projections + 1)
    rows_moved = 2.0 * copies * s.hidden
    cast = 3.0 * here * s.hidden if s.fp8 else 0.0
    routing = moved(m, 6 * rows_moved + gate + cast, 8 * rows_moved + 2 * gate + 2 * cast)
    router = product(m, split, s.hidden, e.count)
    return Routed(products, routing.plus(router), _exchange(s, t, w, m, copies))


def _exchange(s: Shape, t: Traits, w: Spread, m: Machine, copies: Number) -> Both:
    """Dispatch and combine: an all-to-all each, forward and backward; the expert's tensor-parallel ranks gather."""
    size = 2.0 * copies * s.hidden
    group = Group(w.expert, w.expert_tensor)
    there = exchanged(m, group, size, s.experts.top_k if s.experts else 1)
    inside = gathered(m, Group(w.expert_tensor), size * w.expert_tensor)
    one = 2 * (there + inside) * (1 - (m.rates.hidden if t.hides_experts else 0.0))
    return Both(one, one)


Parts = Mapping[str, Both]
MATRIX, ATTENTION, MOVES = "matrix products", "attention", "memory-bound operators"
LINEAR, INDEXER = "linear attention", "indexer of sparse attention"
EXPERTS, DISPATCH = "products of experts", "routing tokens"
TENSOR, CONTEXT, EXPERT = "tensor-parallel exchange", "context-parallel exchange", "expert-parallel exchange"

MATRIX_UNIT = 8
"""16-bit elements that an NVIDIA matrix unit processes at once: without fused attention, products of heads of other
sizes are computed without it (NVIDIA, Matrix Multiplication Background User's Guide)."""
OFF_MATRIX_UNITS = 8.0
"""The factor by which these take longer: fitted to BLOOM's runs with heads of 150, within 1 % for heads of 108."""

PARTIAL = 12.0
"""Bytes that each element of attention's output moves for each additional part of the ring: the part is read, the sum
read and written, in 4 bytes."""


def layer(s: Shape, t: Traits, w: Spread, m: Machine, routed: bool) -> Parts:
    """All parts of a layer. routed: whether its MLP is a mixture of experts."""
    tokens = s.sequence * w.micro / w.context
    parts = {
        MATRIX: _projections(s, t, w, m, tokens),
        ATTENTION: _attention(s, t, w, m, tokens),
        MOVES: _moves(s, w, m, tokens),
        TENSOR: _tensor_exchange(s, t, w, m, tokens, routed),
        CONTEXT: _context_exchange(s, w, m, tokens),
    }
    if t.linear is not None:
        share, ours = t.linear.share, linear_projections(s, t, w, m, tokens, t.linear)
        parts[MATRIX] = (parts[MATRIX] * (1 - share)).plus(ours * share)
        parts[ATTENTION] = parts[ATTENTION] * (1 - share)
        parts[LINEAR] = delta_rule(w, m, tokens, t.linear) * share
    if t.sparse is not None:
        parts[INDEXER] = indexer(s, w, m, tokens, t.sparse)
    if not routed:
        mlp = _mlp(s, t, w, m, tokens, s.ffn)
        return {**parts, MATRIX: parts[MATRIX].plus(mlp), MOVES: parts[MOVES].plus(_gate(s, w, m, tokens, s.ffn))}
    more = routed_mlp(s, t, w, m)
    if s.experts and s.experts.shared:
        shared = _mlp(s, t, w, m, tokens, s.experts.shared)
        parts = {**parts, MATRIX: parts[MATRIX].plus(shared)}
    return {**parts, EXPERTS: more.products, DISPATCH: more.routing, EXPERT: more.exchange}


def _projections(s: Shape, t: Traits, w: Spread, m: Machine, tokens: Number) -> Both:
    """Queries, keys and values, and attention's output; latent attention: down and up projections."""
    h, trained = s.hidden, not s.adapters
    if s.latent is None:
        wide = (s.heads + 2 * greater(s.groups, w.tensor)) * s.head_dim / w.tensor
        into = product(m, tokens, h, wide, t.recipe, trained)
        return into.plus(product(m, tokens, s.heads * s.head_dim / w.tensor, h, t.recipe, trained))
    a = s.latent
    qk, heads = a.nope + a.rope, s.heads / w.tensor
    parts = [
        product(m, tokens, h, a.kv_rank + a.rope, t.recipe, trained),
        product(m, tokens, a.kv_rank, heads * (a.nope + a.v), t.recipe, trained),
        product(m, tokens, heads * a.v, h, t.recipe, trained),
    ]
    if a.q_rank is None:
        parts.append(product(m, tokens, h, heads * qk, t.recipe, trained))
    else:
        parts += [product(m, tokens, h, a.q_rank, t.recipe, trained)]
        parts += [product(m, tokens, a.q_rank, heads * qk, t.recipe, trained)]
    total = NONE
    for part in parts:
        total = total.plus(part)
    return total


def _mlp(s: Shape, t: Traits, w: Spread, m: Machine, tokens: Number, ffn: Number) -> Both:
    into = product(m, tokens, s.hidden, s.projections * ffn / w.tensor, t.recipe, not s.adapters)
    return into.plus(product(m, tokens, ffn / w.tensor, s.hidden, t.recipe, not s.adapters))


def _attention(s: Shape, t: Traits, w: Spread, m: Machine, tokens: Number) -> Both:
    """A query sees half of the keys (causal), or a window of them in some layers."""
    seen = t.seen(s.sequence)
    pairs = tokens * seen * s.heads / w.tensor
    width = s.head_dim if s.latent is None else s.latent.nope + s.latent.rope
    value = s.head_dim if s.latent is None else s.latent.v
    fused = fused_attention(m, pairs, width, value) * _by_shape(m, min(width, USUAL_HEAD), s.sequence)
    if s.attention != "unfused" and (t.sparse is None or t.sparse.fused):
        return fused
    square = tokens * s.sequence * s.heads / w.tensor
    whole = fused_attention(m, square, width, value)
    if m.device.vendor == "nvidia" and (width % MATRIX_UNIT or value % MATRIX_UNIT):
        whole = whole * OFF_MATRIX_UNITS
    return moved(m, 10.0 * square, 14.0 * square).plus(whole)


USUAL_HEAD, USUAL_SEQUENCE = 128, 8192


def _by_shape(m: Machine, head: float, sequence: float) -> float:
    """The time of the fused kernel for a pair, relative to usual sizes: the softmax of a pair takes as long
    for a small head as for a large one, and a short sequence does not fill the device."""
    ramp, width = m.rates.ramp, m.rates.width
    return (1 + width / head) / (1 + width / USUAL_HEAD) * (1 + ramp / sequence) / (1 + ramp / USUAL_SEQUENCE)


def _moves(s: Shape, w: Spread, m: Machine, tokens: Number) -> Both:
    """Norms, residual sums, dropout: 10 passes of h forward, 14 backward; rotation and layout of queries and keys."""
    split = tokens / chosen(w.sequence_parallel > 0, w.tensor, 1)
    passes = 10 + (4 if s.hidden_dropout else 0) + (4 if s.post_norm else 0)
    heads = (s.heads + 2 * s.groups) * s.head_dim if s.latent is None else 3 * s.heads * (s.latent.nope + s.latent.rope)
    own = 4.0 * tokens * heads / w.tensor
    cast = 6.0 * tokens * s.hidden if s.fp8 else 0.0
    return moved(m, 2.0 * passes * split * s.hidden + own + cast, 3.0 * passes * split * s.hidden + 2 * own + 2 * cast)


def _gate(s: Shape, w: Spread, m: Machine, tokens: Number, ffn: Number) -> Both:
    """The activation reads its inputs and writes its output; backward twice that."""
    once = 2.0 * tokens * ffn / w.tensor * (s.projections + 1) + (3.0 * tokens * ffn / w.tensor if s.fp8 else 0.0)
    return moved(m, once, 2 * once)


def _tensor_exchange(s: Shape, t: Traits, w: Spread, m: Machine, tokens: Number, routed: bool) -> Both:
    """All-gather before and reduce-scatter after attention and the MLP (an all-reduce without sequence parallelism);
    the same in the backward pass, where the part next to the weight's gradient is hidden (Korthikanti et al. 2022)."""
    group = Group(w.tensor)
    size = 2.0 if not t.recipe else 1.5  # gathered in FP8, reduced in 16 bits
    one = gathered(m, group, size * tokens * s.hidden)
    blocks = 2 if not routed else 1
    forward = 2 * blocks * one
    shown = 1 - (m.rates.hidden if t.hides_backward else 0.0)
    backward = blocks * (1 + shown) * one
    if t.hides_tensor:
        forward, backward = forward * (1 - m.rates.hidden), backward * (1 - m.rates.hidden)
    return Both(forward, backward)


def _context_exchange(s: Shape, w: Spread, m: Machine, tokens: Number) -> Both:
    """The ring passes the keys and values of the other ranks, partly hidden behind attention, and sums the partial
    results; the backward pass also sends gradients. An exchange of heads for tokens is an all-to-all before and after
    it."""
    group = Group(w.context, w.tensor)
    if s.exchanged:
        size = 4.0 * tokens * (s.heads + s.groups) * s.head_dim / w.tensor
        one = exchanged(m, group, size)
        return Both(one, one)
    keys = 4.0 * tokens * greater(s.groups, w.tensor) * s.head_dim / w.tensor
    one = gathered(m, group, keys * w.context) * (1 - m.rates.hidden)
    parts = PARTIAL * (w.context - 1) * tokens * s.heads * s.head_dim / w.tensor
    return Both(one, 2 * one).plus(moved(m, parts, 2 * parts))


PASSES = 3
"""An operator that runs again reads its inputs and writes its output: about three times the size of its output."""
MODULES: Mapping[str, Mapping[str, float]] = {
    "core_attn": {ATTENTION: 1.0},
    "layernorm": {MOVES: 0.3},
    "moe_act": {DISPATCH: 0.2},
    "mla_up_proj": {MATRIX: 0.25},
    "mlp": {MATRIX: 0.65, MOVES: 0.3},
    "moe": {EXPERTS: 1.0, DISPATCH: 1.0, EXPERT: 1.0},
    "shared_experts": {MATRIX: 0.2},
}
"""The parts of its layer that the forward pass of a module consists of."""


def modules_again(modules: frozenset[str], parts: Mapping[str, Both]) -> Number:
    """Forward seconds of modules that are recomputed."""
    return sum(
        parts[name].forward * share
        for module in modules
        for name, share in MODULES.get(module, {}).items()
        if name in parts
    )


def full_layers(s: Shape, rank: int) -> int:
    """The fully recomputed layers of a rank."""
    if s.full_layers is not None:
        return sum(row[rank] for row in s.full_layers)
    held = sum(row[rank] for row in s.stages)
    if s.recompute != "full":
        return 0
    if s.method != "block":
        return held
    return min(held, s.recompute_layers * (1 if s.recompute_shared else s.virtual))


def operators_again(s: Shape, t: Traits, w: Spread, m: Machine, rank: int) -> float:
    """Seconds of single recomputed operators of a stage: products at their rate, others by their bytes, experts
    including the exchange of tokens."""
    again = {name: _left(s, counts, rank) for name, counts in s.repeated}
    experts = again.pop("experts", 0)
    work = sum(_work(s, name) * count for name, count in again.items()) * s.tokens / s.tensor
    kept = activations.layer(s, False)
    products = {name for name, _ in s.repeated}
    size = sum(
        PASSES * kept.get(name, 0.0) * _left(s, counts, rank)
        for names, counts in s.operators
        for name in names
        if _MADE_BY.get(name) not in products
    )
    seconds = work / m.sustained("") + size / m.memory
    if experts and s.experts is not None:
        one = routed_mlp(s, t, w, m)
        seconds += experts * float(one.products.forward + one.routing.forward + one.exchange.forward)
    return seconds


def _left(s: Shape, counts: tuple[tuple[int, ...], ...], rank: int) -> int:
    """Layers of a rank in which an operator is recomputed, without the fully recomputed layers."""
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
    "router": "experts",
    "dispatched tokens": "experts",
    "expert outputs": "experts",
}
"""Kept outputs of matrix work: recomputing it is counted in operations."""
