"""Seconds of linear attention, and of the indexer of sparse attention; counted from operations and bytes."""

from __future__ import annotations

from preflight.memory.shape import Shape
from preflight.run.attention import LinearAttention, SparseAttention
from preflight.steptime.arithmetic import Number
from preflight.steptime.machine import Machine
from preflight.steptime.operators import Both, fused_attention, moved, product
from preflight.steptime.spread import Spread
from preflight.steptime.traits import Traits

CHUNK = 64
"""Tokens that the delta rule takes at a time (Yang et al. 2024, Gated Delta Networks, section 3.3)."""


def linear_projections(s: Shape, t: Traits, w: Spread, m: Machine, tokens: Number, a: LinearAttention) -> Both:
    """Queries, keys, values and gates, and the output (core_v0.16.0 megatron/core/ssm/gated_delta_net.py)."""
    wide = (2 * a.keys + 2 * a.values + 2 * a.value_heads) / w.tensor
    into = product(m, tokens, s.hidden, wide, t.recipe, not s.adapters)
    return into.plus(product(m, tokens, a.values / w.tensor, s.hidden, t.recipe, not s.adapters))


def delta_rule(w: Spread, m: Machine, tokens: Number, a: LinearAttention) -> Both:
    """Within a chunk scores of its keys and queries, between chunks a state of each head; small products, as in fused
    attention. The convolution, gates and norm move their channels."""
    k, v = a.key_dim, a.value_dim
    each = 3 * k * v + CHUNK * (3 * k + 2 * v)
    rule = fused_attention(m, tokens * a.value_heads / w.tensor, each, 0)
    channels = 2.0 * tokens * (2 * a.keys + 2 * a.values) / w.tensor
    states = 2.0 * tokens * a.value_heads * k * v / CHUNK / w.tensor
    return rule.plus(moved(m, 4 * channels + 2 * states, 8 * channels + 4 * states))


def indexer(s: Shape, w: Spread, m: Machine, tokens: Number, a: SparseAttention) -> Both:
    """Queries, one key and weights of the indexer, the same on every tensor-parallel rank; its scores of all keys, and
    the choice among them (DeepSeek-V3.2, section 2.1; core_v0.16.0 megatron/core/transformer/
    experimental_attention_variant/dsa.py). Written out, each head's scores are made, cut off, weighted and summed in 4
    bytes."""
    rank = s.latent.q_rank if s.latent is not None and s.latent.q_rank else s.hidden
    both = product(m, tokens, rank, a.heads * a.dim)
    both = both.plus(product(m, tokens, s.hidden, a.dim)).plus(product(m, tokens, s.hidden, a.heads))
    half, square = tokens * s.sequence / 2, tokens * s.sequence
    work = 2.0 * (half if a.fused else square) * a.heads * a.dim / m.sustained("")
    heads = 0.0 if a.fused else 16.0 * square * a.heads
    chosen = 12.0 * (half if a.fused else square)
    both = both.plus(Both(work, 2 * work)).plus(moved(m, heads + chosen, heads + chosen / 3))
    if a.taught:  # the scores of attention's heads, which the indexer learns from
        qk = s.head_dim if s.latent is None else s.latent.nope + s.latent.rope
        seen = half if not a.fused else tokens * a.seen(s.sequence)
        both = both.plus(Both(fused_attention(m, seen * s.heads / w.tensor, qk, 0).forward, 0.0))
    return both * a.share
