"""The kinds of values that are one number or one text."""

from __future__ import annotations

import re
from typing import Any

from preflight.lint.value_kinds import Schema, ValueKind, choices_in_words
from preflight.source.record import dataclass


@dataclass(frozen=True, slots=True)
class Number(ValueKind):
    """A number within bounds; None: no bound. also: numbers that are accepted though they lie outside.

    whole: no fraction. pointed: 1.0 and not 1. booleans: True and False count as 1 and 0, as in Python.
    """

    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    below: float | None = None
    whole: bool = False
    pointed: bool = False
    booleans: bool = False
    also: tuple[float, ...] = ()

    @property
    def words(self) -> str:
        name = "a whole number" if self.whole else "a number with a decimal point" if self.pointed else "a number"
        ends = _bounds_in_words(self.minimum, self.above, self.maximum, self.below)
        return choices_in_words((*map(str, self.also), name + ends))

    @property
    def schema(self) -> Schema:
        names = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
        ends = zip(names, (self.minimum, self.above, self.maximum, self.below), strict=True)
        form = {"type": "integer" if self.whole else "number", **{name: end for name, end in ends if end is not None}}
        return {"anyOf": [*({"const": one} for one in self.also), form]} if self.also else form

    def takes(self, value: Any) -> bool:
        wanted = int if self.whole else float if self.pointed else (int, float)
        if not isinstance(value, wanted) or (isinstance(value, bool) and not self.booleans):
            return False
        return value in self.also or (
            (self.minimum is None or value >= self.minimum)
            and (self.above is None or value > self.above)
            and (self.maximum is None or value <= self.maximum)
            and (self.below is None or value < self.below)
        )


@dataclass(frozen=True, slots=True)
class OneOf(ValueKind):
    """One of a few texts. any_case: upper and lower case are the same. also: texts that are accepted and not named."""

    choices: tuple[str, ...]
    any_case: bool = False
    also: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return choices_in_words(self.choices)

    @property
    def schema(self) -> Schema:
        return {"enum": list(self.choices)}

    def takes(self, value: Any) -> bool:
        if not isinstance(value, str):
            return False
        return (value.lower() if self.any_case else value) in (*self.choices, *self.also)


@dataclass(frozen=True, slots=True)
class Text(ValueKind):
    """A text. pattern: a regular expression that all of it must match."""

    pattern: str = ""

    @property
    def words(self) -> str:
        return "a text"

    @property
    def schema(self) -> Schema:
        return {"type": "string", **({"pattern": f"^({self.pattern})$"} if self.pattern else {})}

    def takes(self, value: Any) -> bool:
        return isinstance(value, str) and (not self.pattern or re.fullmatch(self.pattern, value) is not None)


def _bounds_in_words(minimum: float | None, above: float | None, maximum: float | None, below: float | None) -> str:
    """What follows "a number": " of at least 1", " between 0 and 1" (the ends left out), " from 0 to 1", or nothing."""
    if minimum is not None and maximum is not None:
        return f" from {minimum} to {maximum}"
    if above is not None and below is not None:
        return f" between {above} and {below}"
    ends = (("of at least", minimum), ("above", above), ("of at most", maximum), ("below", below))
    return "".join(
        f" {'and ' if index else ''}{end}"
        for index, end in enumerate(f"{word} {b}" for word, b in ends if b is not None)
    )


def whole(minimum: int | None = None, maximum: int | None = None, *, also: tuple[int, ...] = ()) -> Number:
    """A whole number; True and False are none."""
    return Number(minimum, maximum=maximum, whole=True, also=also)


def one_of(*choices: str, any_case: bool = False, also: tuple[str, ...] = ()) -> OneOf:
    """One of a few texts."""
    return OneOf(choices, any_case, also)


TEXT = Text()
