"""How a run is spread over devices, as numbers or as columns of candidates."""

from __future__ import annotations

from preflight.memory.shape import Shape
from preflight.source.record import NamedTuple
from preflight.steptime.arithmetic import Number


class Spread(NamedTuple):
    """Degrees of parallelism and the batch: each a number, or a column with one number per candidate.

    sequence_parallel: 1 or 0. selective: 1 where the modules of selective recomputation run again.
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
    selective: Number = 0.0


def spread(s: Shape) -> Spread:
    """The layout of one run."""
    return Spread(
        s.tensor, s.pipeline, s.context, s.data, s.expert, s.expert_tensor, s.virtual, float(s.sequence_parallel),
        s.micro, s.count, float(s.recompute == "selective"),
    )  # fmt: skip
