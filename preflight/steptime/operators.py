"""Seconds of single operators on one device, for single numbers or columns of candidates."""

from __future__ import annotations

from preflight.memory import flops
from preflight.memory.inputs_from_plan import Shape
from preflight.run.training_plan import LinearAttention, SparseAttention
from preflight.source.record import NamedTuple
from preflight.steptime.achieved_rates import Machine
from preflight.steptime.elementwise_math import Number
from preflight.steptime.layout_and_plan_traits import Spread, Traits


def model_operations(s: Shape, t: Traits) -> float:
    """3 · (2 · weights + scores of the keys that are seen) · tokens; recomputation does not count."""
    layers = sum(map(sum, s.stages))
    routed = sum(s.experts.layers[:layers]) if s.experts is not None else 0
    total = 2.0 * s.hidden * s.vocab * (1 + s.mtp)
    for count, mixed in ((layers - routed, False), (routed, True)):
        linear, square = _attended(s, t, *flops.layer_forward(s, mixed))
        total += count * (linear + square * t.seen(s.sequence) / s.sequence)
    return 3 * total * s.sequence


def _attended(s: Shape, t: Traits, linear: float, square: float) -> tuple[float, float]:
    """The same with linear attention in a share of the layers, and an indexer; the rule's state as Megatron-LM counts
    it (core_v0.16.0 megatron/training/training.py:494-524)."""
    if (a := t.linear) is not None:
        usual = 2 * s.hidden * (2 * s.heads + 2 * s.groups) * s.head_dim
        ours = s.hidden * (2 * a.keys + 3 * a.values + 2 * a.value_heads) + a.kernel * (2 * a.keys + a.values)
        ours += 4 * a.value_heads * a.value_dim**2
        linear, square = linear + a.share * (2 * ours - usual), square * (1 - a.share)
    if (i := t.sparse) is not None:
        rank = s.latent.q_rank if s.latent is not None and s.latent.q_rank else s.hidden
        own = rank * i.heads * i.dim + s.hidden * (i.dim + i.heads) + i.heads * i.dim * s.sequence / 2
        linear += 2 * i.share * own
    return linear, square


class Both(NamedTuple):
    """Seconds of the forward and of the backward pass."""

    forward: Number
    backward: Number

    def __mul__(self, factor: Number) -> Both:
        return Both(self.forward * factor, self.backward * factor)

    def plus(self, other: Both) -> Both:
        """The sum of both passes, part by part."""
        return Both(self.forward + other.forward, self.backward + other.backward)

    @property
    def total(self) -> Number:
        return self.forward + self.backward


NONE = Both(0.0, 0.0)


def product(m: Machine, rows: Number, inner: Number, columns: Number, recipe: str = "", trained: bool = True) -> Both:
    """A matrix product 2·M·K·N over the sustained rate, and its operands once through memory.

    The second part makes small products slow: the efficiency is 1/(1 + ρ(1/M + 1/K + 1/N)) where ρ is the number of
    operations per moved byte (Williams et al. 2009). Backward: two such products; the weight's gradient is added to a
    4-byte buffer.
    """
    work = 2.0 * rows * inner * columns / m.sustained(recipe)
    size = 1 if recipe and m.peak(recipe) > m.flops else 2
    left, weight, out = size * rows * inner, size * inner * columns, 2 * rows * columns
    one = work + (left + weight + out) / m.operands
    gradient = work + (left + size * rows * columns + 8 * inner * columns) / m.operands if trained else 0.0
    return Both(one, one + gradient)


def moved(m: Machine, forward: Number, backward: Number) -> Both:
    """Operators that only move data: bytes over bandwidth."""
    return Both(forward / m.memory, backward / m.memory)


def fused_attention(m: Machine, pairs: Number, width: Number, value_width: Number) -> Both:
    """Fused attention: 2 operations for each query-key pair and channel, for scores and for values; 2.5 times as many
    in the backward pass, which recomputes the scores (Dao 2023)."""
    work = 2.0 * pairs * (width + value_width)
    rates = m.rates
    return Both(work / (m.flops * rates.attention), 2.5 * work / (m.flops * rates.attention_back))


CHUNK = 64
"""Tokens that the delta rule processes at a time (Yang et al. 2024, Gated Delta Networks, section 3.3)."""


def linear_projections(s: Shape, t: Traits, w: Spread, m: Machine, tokens: Number, a: LinearAttention) -> Both:
    """Queries, keys, values and gates, and the output (core_v0.16.0 megatron/core/ssm/gated_delta_net.py)."""
    wide = (2 * a.keys + 2 * a.values + 2 * a.value_heads) / w.tensor
    into = product(m, tokens, s.hidden, wide, t.recipe, not s.adapters)
    return into.plus(product(m, tokens, a.values / w.tensor, s.hidden, t.recipe, not s.adapters))


def delta_rule(w: Spread, m: Machine, tokens: Number, a: LinearAttention) -> Both:
    """Within a chunk there are scores of its keys and queries, between chunks a state of each head; the products are
    small, as in fused attention. The convolution, gates and norm move their channels."""
    k, v = a.key_dim, a.value_dim
    each = 3 * k * v + CHUNK * (3 * k + 2 * v)
    rule = fused_attention(m, tokens * a.value_heads / w.tensor, each, 0)
    channels = 2.0 * tokens * (2 * a.keys + 2 * a.values) / w.tensor
    states = 2.0 * tokens * a.value_heads * k * v / CHUNK / w.tensor
    return rule.plus(moved(m, 4 * channels + 2 * states, 8 * channels + 4 * states))


def indexer(s: Shape, w: Spread, m: Machine, tokens: Number, a: SparseAttention) -> Both:
    """Queries, one key and weights of the indexer, the same on every tensor-parallel rank; its scores of all keys, and
    the choice among them (DeepSeek-V3.2, section 2.1; core_v0.16.0 megatron/core/transformer/
    experimental_attention_variant/dsa.py). If materialized, the scores of each head are computed, clipped, weighted and
    summed in 4 bytes."""
    rank = s.latent.q_rank if s.latent is not None and s.latent.q_rank else s.hidden
    both = product(m, tokens, rank, a.heads * a.dim)
    both = both.plus(product(m, tokens, s.hidden, a.dim)).plus(product(m, tokens, s.hidden, a.heads))
    half, square = tokens * s.sequence / 2, tokens * s.sequence
    work = 2.0 * (half if a.fused else square) * a.heads * a.dim / m.sustained("")
    heads = 0.0 if a.fused else 16.0 * square * a.heads
    chosen = 12.0 * (half if a.fused else square)
    both = both.plus(Both(work, 2 * work)).plus(moved(m, heads + chosen, heads + chosen / 3))
    if a.taught:  # the scores of the attention heads, from which the indexer learns
        qk = s.head_dim if s.latent is None else s.latent.nope + s.latent.rope
        seen = half if not a.fused else tokens * a.seen(s.sequence)
        both = both.plus(Both(fused_attention(m, seen * s.heads / w.tensor, qk, 0).forward, 0.0))
    return both * a.share
