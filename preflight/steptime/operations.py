"""Model operations of one sample, forward and backward, by the convention that attention's causal half counts."""

from __future__ import annotations

from preflight.memory import flops
from preflight.memory.shape import Shape
from preflight.steptime.traits import Traits


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
