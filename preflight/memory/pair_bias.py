"""Attention's bias for each pair of a query and a key (ALiBi), in 16 bits."""

from __future__ import annotations

from preflight.memory.shape import Shape


def tensor(s: Shape) -> float:
    """Bytes of one: 2·(a/t)·s²."""
    return 2 * s.heads / s.tensor * s.sequence**2


def kept(s: Shape) -> dict[str, float]:
    """What a layer in flight keeps: the bias scaled for the kernel, or the scores that it was added to."""
    return {"attention bias": s.pair_bias[0] * s.micro * tensor(s)} if s.pair_bias and s.pair_bias[0] else {}


def stays(s: Shape) -> float:
    """What one object keeps for all layers."""
    return (s.pair_bias[1] + s.pair_bias[2] * s.micro) * tensor(s) if s.pair_bias else 0.0
