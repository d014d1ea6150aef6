"""Micro-batches (chunks) in flight: how many forward passes a pipeline rank has done before its first backward.

Source: Megatron-LM d98e8a6, megatron/core/pipeline_parallel/schedules.py.
"""

from __future__ import annotations

from preflight.memory.shape import Shape

ALL_FORWARD = "all-forward"
"""The interleaved schedule of old where there are as many micro-batches as stages:
no backward pass before the last forward pass."""


def in_flight(s: Shape, rank: int) -> tuple[float, ...]:
    """Micro-batches whose activations are alive at the worst moment, per virtual chunk of the rank.

    A sequence pipeline sends parts of a sequence; all parts of one are alive, and one part more per stage behind.
    """
    if s.splits > 1:
        return (min(s.count, (s.splits + s.pipeline - rank - 1) / s.splits),) * s.virtual
    if s.schedule in ("gpipe", ALL_FORWARD):
        return (s.count,) * s.virtual
    if s.schedule in ("zero-bubble-v", "dual-pipe-v"):
        return tuple(min(s.count, 2 * s.pipeline - rank if v == 0 else rank + 1) for v in range(s.virtual))
    if s.virtual == 1:
        return (min(s.count, s.pipeline - rank),)
    return _interleaved(s, min(s.count * s.virtual, 2 * (s.pipeline - rank - 1) + (s.virtual - 1) * s.group + 1))


def _interleaved(s: Shape, warm_up: int) -> tuple[float, ...]:
    """The first chunk-steps of the interleaved schedule, per chunk: groups of micro-batches walk through the chunks one
    after another. Where experts' communication is overlapped, the step that is alive with them has been warm-up and the
    next one trades layers with the backward pass (schedules.py:966-970)."""
    rounds, rest = divmod(warm_up, s.group * s.virtual)
    left = s.count - rounds * s.group
    group = min(s.group, left) if left > 0 else s.group
    alive = [rounds * s.group + min(max(rest - v * group, 0), group) for v in range(s.virtual)]
    alive[-1] += warm_up - sum(alive)
    return tuple(alive)
