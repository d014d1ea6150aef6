"""Slow tests take a sample of their many rows; PREFLIGHT_WHOLE=1 lets them take every row."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

Row = TypeVar("Row")
WHOLE = bool(os.environ.get("PREFLIGHT_WHOLE"))


def one_in(number: int, rows: Iterable[Row], start: int = 0) -> list[Row]:
    """Each numberth row from the start, or every row where the environment asks for the whole."""
    return list(rows) if WHOLE else list(rows)[start::number]
