"""The result of a search: layouts that pass the rules and fit, in display order, and the reasons why others were
rejected."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from preflight.memory import MemoryEstimate
from preflight.run.training_plan import Sizes
from preflight.source.finding import Edit
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any
from preflight.steptime.elementwise_math import greater, lesser


class Found(NamedTuple):
    """A layout that passes the rules and fits: seconds per step (estimated), parts of it, bytes left on the device.

    plain: seconds of the same layout in 16 bits, if it is written with FP8. alike: layouts with the same number are
    equally fast within the accuracy of the estimates.
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
    """Layouts, best first; the number considered; why others were rejected; why nothing could be searched.

    device: whose speed the times assume; "" if no device is named. present: the present sizes. current: the present
    layout, whether or not it fits; None if `withheld` has the reason. rank: its place by time among the layouts that
    pass the rules and fit, 0 if it has none; at_least: the rank is a lower bound, because not all were tried. tokens:
    of a step. pace: the estimated time of a measured run divided by its measured time, 1 without one. assumed:
    assumptions of the times about facts that the run does not state. standing: rules for which no layout fixes the
    errors. fp8: the recipe written with each layout; not_fp8: why there is none, if FP8 was requested.
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


ALIKE = 0.03
"""Layouts whose times are closer than this form one class. For two layouts of a published sweep that are estimated
within 5 % of the fastest, the difference of measured times deviates by 4 % in the median, by 9 % in nine of ten cases.
With this width the simplest layout of the first class is within 5 % of the measured best in all 15 sweeps, with 5 % in
four of five, with 10 % in two of three: beyond it, the estimate is a better guide than simplicity (docs/layouts.md)."""
ROOM = 0.10
"""The share of device memory that a layout should leave free without a penalty: the allocator reserves up to 11 % more
than is allocated (3 % in the median of 12 published pairs), and evaluation and longer sequences need more."""
PRICE = 0.05
"""How much faster a layout without free memory must be: a judgement, not a measurement."""


def price(free: Any, budget: float) -> Any:
    """The factor on a layout's time for the bytes that it leaves free: a number, or a column of them."""
    if not math.isfinite(budget):
        return 1.0
    return 1 + PRICE * lesser(greater(1 - free / (ROOM * budget), 0.0), 1.0)


def in_classes(layouts: Iterable[Found], budget: float) -> list[Found]:
    """The layouts by class, and within a class the simplest first."""
    left = sorted(layouts, key=lambda found: _priced(found, budget))
    told: list[Found] = []
    number = 0
    while left:
        number += 1
        most = _priced(left[0], budget) * (1 + ALIKE)
        group = [found for found in left if _priced(found, budget) <= most]
        left = left[len(group) :]
        told += [found._replace(alike=number) for found in sorted(group, key=lambda found: _effort(found, budget))]
    return told


def _priced(found: Found, budget: float) -> float:
    free = found.headroom if math.isfinite(found.headroom) else 0.0
    return float(found.seconds * price(free, budget))


def _effort(found: Found, budget: float) -> tuple[float, ...]:
    """The sort key for simplicity: few kinds of splitting, equal stages, few changes, then the time."""
    sizes = found.sizes
    ways = sizes.virtual + sizes.pipeline + sizes.context + sizes.tensor
    uneven = sum(map(bool, (sizes.stages and len(set(sizes.stages)) > 1, sizes.chunks, sizes.listed)))
    return (ways, uneven, len(found.edits), _priced(found, budget))
