"""A parallel layout in plain numbers."""

from __future__ import annotations

from preflight.source.record import NamedTuple


class Sizes(NamedTuple):
    """A parallel layout in plain numbers, as the search proposes it. None leaves to the framework what it derives.

    recompute: "none", "selective" or "full"; full_layers: fully recomputed layers per pipeline stage instead;
    listed: beside them, layers per stage, the full ones among them, in which cheap operators are recomputed;
    stages: decoder layers per pipeline stage where they are to be written, chunks: by virtual stage and pipeline stage,
    likewise;
    sharded: shard the optimizer states; fused: switch on a kernel that keeps less, of "attention" or of the "loss";
    fp8: compute products in FP8 by this recipe, "" leaves the precision as it is.
    micro_batches 0 leaves their number as it comes out.
    """

    tensor: int
    pipeline: int
    context: int
    expert: int
    expert_tensor: int
    data: int
    virtual: int
    sequence_parallel: bool
    micro: int
    micro_batches: int
    recompute: str = "none"
    full_layers: tuple[int, ...] | None = None
    listed: tuple[int, ...] | None = None
    stages: tuple[int, ...] | None = None
    chunks: tuple[tuple[int, ...], ...] | None = None
    sharded: bool = False
    fused: str = ""
    fp8: str = ""
