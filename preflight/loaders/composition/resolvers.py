"""Resolvers of interpolations that compute numbers. What reads the environment or a file is not among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MAX_NUMBER = 10**18


def _number(value: object) -> Any:
    """A number of ordinary size. Raises TypeError for anything else: Python multiplies texts, too."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > MAX_NUMBER:
        raise TypeError
    return value


def mul(one: object, other: object) -> object:
    """One number times another."""
    return _number(one) * _number(other)


def div(one: object, other: object) -> object:
    """One number by another, with a fraction."""
    return _number(one) / _number(other)


def largest(one: object, other: object) -> object:
    """The larger of two numbers."""
    return max(_number(one), _number(other))


ARITHMETIC: dict[str, Callable[..., object]] = {"mul": mul, "div": div, "max": largest}
