"""Arithmetic that is the same for one number and for a column of many: a search estimates all candidates at once."""

from __future__ import annotations

from typing import Any

Number = Any
"""A float, or an array of floats: one per candidate."""


def greater(one: Number, other: Number) -> Number:
    """The larger of two."""
    return (one + other + abs(one - other)) / 2


def lesser(one: Number, other: Number) -> Number:
    """The smaller of two."""
    return (one + other - abs(one - other)) / 2


def chosen(condition: Number, yes: Number, no: Number) -> Number:
    """One of two finite numbers; the condition is a truth value, or a column of them."""
    return condition * yes + (1 - condition) * no


def up(number: Number) -> Number:
    """Rounded up to a whole number."""
    return -(-number // 1)
