"""In which order layouts are shown: the fastest first, as far as estimates tell layouts apart and memory is left."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from preflight.layouts.result import Found

ALIKE = 0.03
"""Layouts whose times are closer are one class. Of two layouts of a published sweep that are estimated within 5 % of
the fastest, the measured times are 4 % further apart or closer in the median, 9 % in nine of ten. With this width the
simplest of the first class is within 5 % of the measured best in all 15 sweeps, with 5 % in four of five, with 10 % in
two of three: beyond it, the estimate knows more than simplicity (docs/layouts.md)."""
ROOM = 0.10
"""Of the memory of a device, what a layout leaves free at no price: what the allocator reserves is up to 11 % more than
what is allocated (3 % in the median of 12 published pairs), and evaluation and longer sequences need more."""
PRICE = 0.05
"""How much faster a layout has to be that leaves nothing free: a judgement, not a measurement."""


def price(free: Any, budget: float) -> Any:
    """What a layout's time is multiplied by for the bytes that it leaves free: a number, or a column of them."""
    if not math.isfinite(budget):
        return 1.0
    return 1 + PRICE * np.clip(1 - free / (ROOM * budget), 0, 1)


def in_classes(layouts: Iterable[Found], budget: float) -> list[Found]:
    """The layouts by class, and in a class the simplest first."""
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
    """What makes a layout simple: few ways of splitting, stages of one size, little that changes, then its time."""
    sizes = found.sizes
    ways = sizes.virtual + sizes.pipeline + sizes.context + sizes.tensor
    uneven = sum(map(bool, (sizes.stages and len(set(sizes.stages)) > 1, sizes.chunks, sizes.listed)))
    return (ways, uneven, len(found.edits), _priced(found, budget))
