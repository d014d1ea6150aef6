"""Arithmetic on single numbers or on columns, so that a search can estimate all candidates at once."""

from __future__ import annotations

from importlib import import_module

from preflight.source.typing_without_import import Any

Number = Any
"""A float, or an array of floats: one per candidate."""


def _are_numbers(*values: Number) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def _numpy() -> Any:
    """numpy, already imported by callers that pass columns."""
    return import_module("numpy")


def greater(one: Number, other: Number) -> Number:
    """The larger of two."""
    return float(max(one, other)) if _are_numbers(one, other) else _numpy().maximum(one, other)


def lesser(one: Number, other: Number) -> Number:
    """The smaller of two."""
    return float(min(one, other)) if _are_numbers(one, other) else _numpy().minimum(one, other)


def chosen(condition: Number, yes: Number, no: Number) -> Number:
    """One of two finite numbers, by a condition that is a truth value or a column of them."""
    return condition * yes + (1 - condition) * no


def up(number: Number) -> Number:
    """Rounded up to an integer."""
    return -(-number // 1)
