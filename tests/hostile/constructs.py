"""Builds texts of any length from one construct: a file name, and a text of about the given number of characters."""

from __future__ import annotations

from collections.abc import Callable

Shape = Callable[[int], tuple[str, str]]


def repeated(name: str, unit: str, before: str = "", after: str = "") -> Shape:
    """The same text, repeated."""

    def made(size: int) -> tuple[str, str]:
        return name, before + unit * max(1, (size - len(before) - len(after)) // len(unit)) + after

    return made


def numbered(name: str, unit: str, before: str = "", after: str = "") -> Shape:
    """A repeated text with a number in it: `%d`, as often as it occurs."""

    def made(size: int) -> tuple[str, str]:
        number, marks = max(1, (size - len(before) - len(after)) // (len(unit) + 3)), unit.count("%d")
        return name, before + "".join([unit % ((i,) * marks) for i in range(number)]) + after

    return made


def nested(name: str, opening: str, inner: str, closing: str, before: str = "", after: str = "") -> Shape:
    """A construct in itself."""

    def made(size: int) -> tuple[str, str]:
        depth = max(1, (size - len(before) - len(after)) // (len(opening) + len(closing)))
        return name, before + opening * depth + inner + closing * depth + after

    return made


def doubled(name: str, times: int, unit: str, before: str = "", after: str = "") -> Shape:
    """The same key or option, repeated this number of times."""
    return repeated(name, unit * times, before, after)
