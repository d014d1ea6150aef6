"""Memory of a predict or inference run: weights and the key-value cache, in bytes."""

from __future__ import annotations

from preflight.memory import parameters
from preflight.memory.result import Term
from preflight.memory.shape import Shape


def cached_per_token(s: Shape, cache_bytes: int = 2) -> float:
    """Bytes of cache per token and layer: keys and values of g heads, 2·g·d;
    latent attention keeps kv_rank + rope once."""
    if s.latent is not None:
        return cache_bytes * (s.latent.kv_rank + s.latent.rope)
    return cache_bytes * 2 * max(s.groups / s.tensor, 1) * s.head_dim


def cache(s: Shape, rank: int, tokens: float, cache_bytes: int = 2) -> float:
    """Cache of a rank for so many tokens in all (batch x length, or blocks x block size)."""
    layers = sum(row[rank] for row in s.stages)
    return layers * tokens * cached_per_token(s, cache_bytes)


def terms(s: Shape, rank: int, tokens: float) -> list[Term]:
    """Weights and cache of a rank."""
    n = parameters.stage(s, rank)
    weights, kept = s.parameter_bytes * n.total, cache(s, rank, tokens)
    work = 2.0 * s.tokens * max(s.ffn * s.projections / s.tensor, s.vocab / s.tensor / max(s.sequence, 1))
    return [
        Term("weights", weights, weights, f"{s.parameter_bytes} x {n.total:.4g} parameters", "steady"),
        Term("key-value cache", kept, kept, f"layers x {tokens:.4g} tokens x {cached_per_token(s):g}", "steady"),
        Term("activations of the prompt", 0.0, work, "2 T f / t", "dynamic"),
    ]
