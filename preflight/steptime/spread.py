"""How a run is spread over devices, as numbers or as columns of candidates."""

from __future__ import annotations

from preflight.memory.shape import Shape
from preflight.source.record import NamedTuple
from preflight.steptime.arithmetic import Number


class Spread(NamedTuple):
    """Degrees of parallelism and the batch: each a number, or a column with one number per candidate.

    sequence_parallel: 1 or 0. full: share of the layers that is recomputed in full; selective: 1 where the modules of
    selective recomputation run again.
    """

    tensor: Number
    pipeline: Number
    context: Number
    data: Number
    expert: Number
    expert_tensor: Number
    virtual: Number
    sequence_parallel: Number
    micro: Number
    count: Number
    full: Number = 0.0
    selective: Number = 0.0


def spread(s: Shape) -> Spread:
    """The layout of one run."""
    layers = max(sum(map(sum, s.stages)), 1)
    full = 0.0
    if s.full_layers is not None:
        full = sum(map(sum, s.full_layers)) / layers
    elif s.recompute == "full":
        held = s.pipeline * (1 if s.recompute_shared else s.virtual)
        full = min(1.0, s.recompute_layers * held / layers) if s.method == "block" else 1.0
    return Spread(
        s.tensor, s.pipeline, s.context, s.data, s.expert, s.expert_tensor, s.virtual, float(s.sequence_parallel),
        s.micro, s.count, full, float(s.recompute == "selective"),
    )  # fmt: skip
