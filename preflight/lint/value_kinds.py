"""Kinds of values: the accepted values of a setting, in words for a message, as a test, and as JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.loaders.document import Unknown
from preflight.source.finding import Edit, Fix, Safety
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import dataclass
from preflight.source.source_file import Span
from preflight.source.spelling import float_of_yaml
from preflight.source.typing_without_import import Any

_RATE = lazy_pattern(r"(?i)(?:^|_)(?:lr|learning_rate)(?:_|$)")
_SMALL = lazy_pattern(r"(?i)(?:^|_)(?:lr|rate|eps|epsilon|decay|std|coeff?|dropout)(?:_|$)")
"""Names of numbers that are less than 1 in practice."""


def spellings(text: str) -> tuple[str, ...]:
    """The number as YAML reads it; if its exponent has no sign, with both signs, because it is unknown which one was
    omitted."""
    plus = float_of_yaml(text)
    if text.lower().partition("e")[2][:1] in "+-":
        return (plus,)
    return (plus, plus.replace("e+", "e-"))


def ways(text: str, key: tuple[str | int, ...], span: Span) -> tuple[Fix, ...]:
    """A fix for each number that a text may mean. Only a fix that cannot change the meaning is safe: if the sign of the
    exponent is missing, or a learning rate would exceed 1, the fixes are only offered, the likely one first."""
    numbers = spellings(text)
    name = next((str(part) for part in reversed(key) if isinstance(part, str)), "")
    if _SMALL.search(name):
        numbers = numbers[::-1]
    sure = len(numbers) == 1 and not (_RATE.search(name) and abs(float(numbers[0])) > 1)
    safety = Safety.SAFE if sure else Safety.UNSAFE
    return tuple(
        Fix(f"write {number}", (Edit("splice", key, number, span),), safety, offered=not sure) for number in numbers
    )


Schema = dict[str, Any]


class ValueKind:
    """The accepted values of a setting. A kind defines `words` and either `takes`, the test of a known value, or
    `accepts`."""

    __slots__ = ()

    @property
    def words(self) -> str:
        """The required form, as the text after "must be" in a message."""
        raise NotImplementedError

    @property
    def schema(self) -> Schema:
        """The form in JSON Schema, {} if it has none. Values that only Python accepts, such as True for 1, are
        excluded."""
        return {}

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed texts."""
        return ()

    @property
    def switch(self) -> bool:
        """Whether it accepts True and False."""
        return False

    def takes(self, value: Any) -> bool:
        """Whether a known value is of the kind."""
        return self.accepts(value) is True

    def accepts(self, value: object) -> bool | Unknown:
        """Whether a value is of the kind; Unknown if that depends on unknown parts."""
        return value if isinstance(value, Unknown) else self.takes(value)

    def or_null(self) -> ValueKind:
        """The kind, or null. A message does not mention null, because an empty setting is rarely intended."""
        return OrNull(self)

    def worded(self, words: str) -> ValueKind:
        """The same kind in other words."""
        return Worded(self, words)

    def __or__(self, other: ValueKind) -> ValueKind:
        return AnyOf((self, other))

    def __invert__(self) -> ValueKind:
        return NoneOf(self)


@dataclass(frozen=True, slots=True)
class Instance(ValueKind):
    """Any value of one Python type. json: the type's name in JSON Schema."""

    type: type
    words: str
    json: str

    @property
    def schema(self) -> Schema:
        return {"type": self.json}

    @property
    def switch(self) -> bool:
        return self.type is bool

    def takes(self, value: Any) -> bool:
        return isinstance(value, self.type)


@dataclass(frozen=True, slots=True)
class ListOf(ValueKind):
    """A list whose entries are of a kind. length: the required number, None for any."""

    entry: ValueKind
    length: int | None = None

    @property
    def words(self) -> str:
        if self.length is None:
            return f"a list in which each entry is {self.entry.words}"
        return f"a list of {self.length} entries, each {self.entry.words}"

    @property
    def schema(self) -> Schema:
        sizes = {} if self.length is None else {"minItems": self.length, "maxItems": self.length}
        return {"type": "array", "items": self.entry.schema, **sizes}

    def accepts(self, value: object) -> bool | Unknown:
        if not isinstance(value, list):
            return value if isinstance(value, Unknown) else False
        found = [self.entry.accepts(one) for one in value]
        return False if self.length not in (None, len(value)) else _decided(found, by=False)


@dataclass(frozen=True, slots=True)
class AnyOf(ValueKind):
    """A value of one of several kinds."""

    kinds: tuple[ValueKind, ...]

    @property
    def words(self) -> str:
        return choices_in_words([kind.words for kind in self.kinds])

    @property
    def schema(self) -> Schema:
        forms = [kind.schema for kind in self.kinds]
        if all(form.keys() == {"type"} for form in forms):
            types = (form["type"] for form in forms)
            return {"type": [one for kind in types for one in (kind if isinstance(kind, list) else [kind])]}
        return {"anyOf": forms} if all(forms) else {}

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(choice for kind in self.kinds for choice in kind.choices)

    @property
    def switch(self) -> bool:
        return any(kind.switch for kind in self.kinds)

    def accepts(self, value: object) -> bool | Unknown:
        return _decided([kind.accepts(value) for kind in self.kinds], by=True)

    def __or__(self, other: ValueKind) -> ValueKind:
        return AnyOf((*self.kinds, other))


@dataclass(frozen=True, slots=True)
class NoneOf(ValueKind):
    """Any value that is not of a kind."""

    kind: ValueKind

    @property
    def words(self) -> str:
        return f"anything but {self.kind.words}"

    def accepts(self, value: object) -> bool | Unknown:
        found = self.kind.accepts(value)
        return found if isinstance(found, Unknown) else not found


class _Same(ValueKind):
    """A kind applied to another view of the value."""

    __slots__ = ()
    kind: ValueKind

    @property
    def schema(self) -> Schema:
        return self.kind.schema

    @property
    def choices(self) -> tuple[str, ...]:
        return self.kind.choices

    @property
    def switch(self) -> bool:
        return self.kind.switch

    def accepts(self, value: object) -> bool | Unknown:
        return self.kind.accepts(value)


@dataclass(frozen=True, slots=True)
class Worded(_Same):
    """A kind described in other words."""

    kind: ValueKind
    words: str


@dataclass(frozen=True, slots=True)
class OrNull(_Same):
    """A kind, or null."""

    kind: ValueKind

    @property
    def words(self) -> str:
        return self.kind.words

    @property
    def schema(self) -> Schema:
        return AnyOf((self.kind, NULL)).schema

    def accepts(self, value: object) -> bool | Unknown:
        return True if value is None else self.kind.accepts(value)


def _decided(found: list[bool | Unknown], *, by: bool) -> bool | Unknown:
    """The combination of several answers: `by` as soon as one is, otherwise Unknown as soon as one is."""
    if any(one is by for one in found):
        return by
    return next((one for one in found if isinstance(one, Unknown)), not by)


def choices_in_words(choices: Sequence[str]) -> str:
    """ "a", "a or b", "a, b or c"."""
    return " or ".join(part for part in (", ".join(choices[:-1]), choices[-1]) if part)


NULL = Instance(type(None), "null", "null")
SWITCH = Instance(bool, "True or False", "boolean")
LIST = Instance(list, "a list", "array")
MAPPING = Instance(dict, "a mapping", "object")


@dataclass(frozen=True, slots=True)
class Number(ValueKind):
    """A number within bounds; None: no bound. also: accepted numbers outside the bounds. whole: no fraction. pointed:
    1.0 and not 1. booleans: True and False count as 1 and 0, as in Python.
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
        noun = "integer" if self.whole else "float" if self.pointed else "number"
        bounds = (self.minimum, self.above, self.maximum, self.below)
        if self.minimum == 0 and bounds[1:] == (None, None, None):
            words = _NON_NEGATIVE[noun]
        elif self.whole and bounds == (1, None, None, None):
            words = "a positive integer"
        elif self.minimum is not None and self.minimum == self.maximum:
            words = str(self.minimum)
        else:
            words = f"{'an' if self.whole else 'a'} {noun}{_bounds_in_words(*bounds)}"
        return choices_in_words((*map(str, self.also), words))

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
    """One of a few texts. any_case: case is ignored. also: texts that are accepted but not named."""

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
    """A text. pattern: a regular expression for the whole text."""

    pattern: str = ""

    @property
    def words(self) -> str:
        return "a string"

    @property
    def schema(self) -> Schema:
        return {"type": "string", **({"pattern": f"^({self.pattern})$"} if self.pattern else {})}

    def takes(self, value: Any) -> bool:
        return isinstance(value, str) and (not self.pattern or re.fullmatch(self.pattern, value) is not None)


_NON_NEGATIVE = {
    "integer": "a non-negative integer",
    "float": "a non-negative float",
    "number": "a non-negative number",
}


def _bounds_in_words(minimum: float | None, above: float | None, maximum: float | None, below: float | None) -> str:
    """The words after "a number": " that is at least 1", " between 0 and 1" (the ends excluded), " from 0 to 1", or
    nothing."""
    if minimum is not None and maximum is not None:
        return f" from {minimum} to {maximum}"
    if above is not None and below is not None:
        return f" between {above} and {below}"
    ends = (("at least", minimum), ("above", above), ("at most", maximum), ("below", below))
    words = " and ".join(f"{word} {bound}" for word, bound in ends if bound is not None)
    return f" that is {words}" if words.startswith("at ") else f" {words}" if words else ""


def whole(minimum: int | None = None, maximum: int | None = None, *, also: tuple[int, ...] = ()) -> Number:
    """An integer, except True and False."""
    return Number(minimum, maximum=maximum, whole=True, also=also)


def one_of(*choices: str, any_case: bool = False, also: tuple[str, ...] = ()) -> OneOf:
    """One of a few texts."""
    return OneOf(choices, any_case, also)


TEXT = Text()
