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
        linear, square = flops.layer_forward(s, mixed)
        total += count * (linear + square * t.seen(s.sequence) / s.sequence)
    return 3 * total * s.sequence
