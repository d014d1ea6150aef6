"""How many layers of each pipeline stage have to be recomputed as a whole, and what an exact layout costs in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from preflight.memory.estimate import stage
from preflight.memory.shape import Shape
from preflight.run.cluster import Cluster
from preflight.run.sizes import Sizes
from preflight.source.record import NamedTuple
from preflight.steptime.estimate import timed
from preflight.steptime.machine import machine
from preflight.steptime.traits import Traits


def placed(s: Shape, wanted: Sizes, selected: frozenset[str] = frozenset()) -> Shape:
    """The model in another layout; layers that do not divide lie as the layout says, else as now, else rounded up."""
    layers = sum(map(sum, s.stages))
    row = wanted.stages or (-(-layers // (wanted.pipeline * wanted.virtual)),) * wanted.pipeline
    same = wanted.stages is None and (len(s.stages), len(s.stages[0])) == (wanted.virtual, wanted.pipeline)
    chunks = wanted.chunks or (s.stages if same else (row,) * wanted.virtual)
    expert_grid = wanted.expert_tensor * wanted.expert * wanted.pipeline
    world = wanted.data * wanted.tensor * wanted.context * wanted.pipeline
    return replace(
        s, stages=chunks, tensor=wanted.tensor, pipeline=wanted.pipeline, context=wanted.context, expert=wanted.expert,
        expert_tensor=wanted.expert_tensor, data=wanted.data, sequence_parallel=wanted.sequence_parallel,
        micro=wanted.micro,
        count=max(wanted.micro_batches, 1), group=wanted.pipeline, recompute=wanted.recompute, method="uniform",
        recompute_layers=1,
        modules=modules(s, selected) if wanted.recompute == "selective" else frozenset(),
        operators=((tuple(sorted(selected)), chunks),) if wanted.recompute == "selective" and selected else (),
        shards=wanted.data * wanted.context if s.zero else 1,
        expert_shards=max(1, world // expert_grid) if s.zero else 1,
    )  # fmt: skip


def modules(s: Shape, selected: frozenset[str]) -> frozenset[str]:
    """What selective recomputation stands for: the modules or operators that the config names,
    else the core of attention."""
    return s.modules if s.modules or selected else frozenset(("core_attn",))


def required(s: Shape, wanted: Sizes, cluster: Cluster, selected: frozenset[str] = frozenset()) -> float:
    """Bytes that the worst of the first, the second and the last rank of a layout needs. selected: outputs that
    operators named for every layer free in selective recomputation."""
    one = placed(s, wanted, selected)
    return max(stage(one, rank, cluster).required for rank in {0, min(1, one.pipeline - 1), one.pipeline - 1})


class Counts(NamedTuple):
    """Layers of each stage that are recomputed in full; those in which cheap operators are,
    the full ones among them."""

    full: tuple[int, ...]
    listed: tuple[int, ...]


def fewest(s: Shape, cluster: Cluster, available: float, cheap: frozenset[str] = frozenset()) -> Counts | None:
    """The cheapest recomputation of each stage with which it fits: cheap operators in the fewest layers, and only where
    those of all layers are not enough the fewest layers in full. None where even all layers are not."""
    found = [_cheapest(s, cluster, rank, available, cheap) for rank in range(s.pipeline)]
    counts = [pair for pair in found if pair is not None]
    return Counts(*map(tuple, zip(*counts, strict=True))) if len(counts) == len(found) else None


def _cheapest(s: Shape, cluster: Cluster, rank: int, available: float, cheap: frozenset[str]) -> tuple[int, int] | None:
    held = s.stages[0][rank]

    def fits(full: int, listed: int) -> bool:
        return _need(s, cluster, rank, full, listed, cheap) <= available

    if not fits(held, held):
        return None
    full = _least(held, lambda count: fits(count, held))
    return full, (held if full else _least(held, lambda count: fits(0, count))) if cheap else 0


def _least(most: int, enough: Callable[[int], bool]) -> int:
    """The smallest count that is enough, where the largest is."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def _need(s: Shape, cluster: Cluster, rank: int, full: int, listed: int, cheap: frozenset[str]) -> float:
    """Bytes of a stage with so many layers in full and cheap operators in so many, the full ones among them."""
    counts, beyond = (
        tuple(count if other == rank else 0 for other in range(s.pipeline)) for count in (full, max(listed - full, 0))
    )
    operators = ((tuple(sorted(cheap)), (beyond,)),) if cheap else ()
    one = replace(s, recompute="full" if full else "none", method=None, full_layers=(counts,), operators=operators)
    return float(stage(one, rank, cluster).required)


def seconds(s: Shape, cluster: Cluster, t: Traits = Traits()) -> float:
    """A step of an exact layout; the device is one like an A100 where none is named."""
    return float(timed(s, t, machine(cluster)).step.seconds)
