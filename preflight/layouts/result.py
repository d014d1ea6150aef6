"""What a search gives back: layouts that pass the rules and fit, and why others were left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from preflight.memory import MemoryEstimate
from preflight.run.plan import Sizes
from preflight.source.finding import Edit
from preflight.source.record import NamedTuple


class Found(NamedTuple):
    """A layout that passes the rules and fits: seconds per step (estimated), parts of it, bytes left on the device.

    plain: seconds of the same layout in 16 bits, where it is written with FP8. alike: layouts of one number are as fast
    as each other, as far as estimates tell them apart.
    """

    sizes: Sizes
    seconds: float
    bubble: float
    communication: float
    mfu: float
    headroom: float
    memory: MemoryEstimate
    edits: tuple[Edit, ...]
    plain: float | None = None
    alike: int = 1


@dataclass
class Result:
    """Layouts, best first; how many were looked at; why others were left out; why nothing could be searched.

    device: whose speed the times assume; "" where no device is named. present: the present sizes. current: the
    present layout, whether or not it fits; None where `withheld` is the reason that it lacks them. rank: its
    place by time among the layouts that pass the rules and fit, 0 where it has none; at_least: no fewer are faster, and
    not all were tried. tokens: of a step. pace: how many times as fast as its estimate a measured run was, 1 without
    one. assumed: what times take for granted because the run does not state it. standing: rules whose errors no layout
    cures, and that stay. fp8: the recipe that is written with each layout; not_fp8: why there is none, where FP8 is
    asked for.
    """

    layouts: list[Found] = field(default_factory=list)
    considered: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    unknown: str = ""
    device: str = ""
    current: Found | None = None
    present: Sizes | None = None
    withheld: str = ""
    rank: int = 0
    at_least: bool = False
    tokens: float = 0.0
    pace: float = 1.0
    assumed: tuple[str, ...] = ()
    standing: set[str] = field(default_factory=set)
    fp8: str = ""
    not_fp8: str = ""
