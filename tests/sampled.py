"""Slow tests take a sample of their many rows; PREFLIGHT_WHOLE=1 lets them take every row. Long tables of short tests
are split between the quick and the slow tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

Row = TypeVar("Row")
WHOLE = bool(os.environ.get("PREFLIGHT_WHOLE"))


def one_in(number: int, rows: Iterable[Row], start: int = 0) -> list[Row]:
    """Each numberth row from the start, or every row where the environment asks for the whole."""
    return list(rows) if WHOLE else list(rows)[start::number]


def split(rows: Iterable[Row], name: Callable[[Row], str]) -> list[ParameterSet]:
    """The rows of a table as parameters: every second one is slow, except with --rule and --changed. name: of a row."""
    slow = pytest.mark.slow(sampled=True)
    return [pytest.param(row, id=name(row), marks=[slow] if at % 2 else []) for at, row in enumerate(rows)]
