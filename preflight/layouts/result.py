"""What a search gives back: layouts that pass the rules and fit, and why others were left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from preflight.memory import MemoryEstimate
from preflight.run.sizes import Sizes
from preflight.source.finding import Edit
from preflight.source.record import NamedTuple


class Found(NamedTuple):
    """A layout that passes the rules and fits: seconds per step (estimated), parts of it, bytes left on the device."""

    sizes: Sizes
    seconds: float
    bubble: float
    communication: float
    mfu: float
    headroom: float
    memory: MemoryEstimate
    edits: tuple[Edit, ...]


@dataclass
class Result:
    """Layouts, best first; how many were looked at; why others were left out; why nothing could be searched.

    device: whose speed the times assume; "" where no device is named.
    """

    layouts: list[Found] = field(default_factory=list)
    considered: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    unknown: str = ""
    device: str = ""
