"""Slow tests take a sample of their many rows; PREFLIGHT_WHOLE=1 lets them take every row. Long tables of short tests
are split between the quick and the slow tests."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import pytest

Row = TypeVar("Row")
WHOLE = bool(os.environ.get("PREFLIGHT_WHOLE"))


def one_in(number: int, rows: Iterable[Row], start: int = 0) -> list[Row]:
    """Each numberth row from the start, or every row where the environment asks for the whole."""
    return list(rows) if WHOLE else list(rows)[start::number]


def halve(items: Iterable[pytest.Item]) -> None:
    """Makes every second case of the tests that are marked `halved` slow."""
    counted: Counter[str] = Counter()
    for item in items:
        if item.get_closest_marker("halved") is not None:
            name = item.nodeid.partition("[")[0]
            if counted[name] % 2:
                item.add_marker(pytest.mark.slow)
            counted[name] += 1
