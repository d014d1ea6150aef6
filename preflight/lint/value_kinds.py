"""Kinds of values: what a setting accepts, in words for a message, as a test, and as JSON Schema.

A kind is a frozen value: `whole(1)`, `one_of("ON", "OFF")`, `Number(above=0).or_null()`, `TEXT | SWITCH`,
`ListOf(Number(above=0), 2)`, `~NULL`; those of numbers and texts stand in `scalar_kinds`. It makes its words from what
it accepts; `worded` gives it others. `accepts` is three-valued: an unknown value is neither accepted nor refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from preflight.loaders.document import Unknown
from preflight.source.record import dataclass

Schema = dict[str, Any]


class ValueKind:
    """What a setting accepts. A kind defines `words` and either `takes`, the test of a known value, or `accepts`."""

    __slots__ = ()

    @property
    def words(self) -> str:
        """What must stand there, as a message says it after "must be"."""
        raise NotImplementedError

    @property
    def schema(self) -> Schema:
        """The form in JSON Schema, {} where it has none. What only Python lets pass, such as True for 1,
        is left out."""
        return {}

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts to choose from."""
        return ()

    @property
    def switch(self) -> bool:
        """Whether True and False are among what it asks for."""
        return False

    def takes(self, value: Any) -> bool:
        """Whether a value that is known is of the kind."""
        return self.accepts(value) is True

    def accepts(self, value: object) -> bool | Unknown:
        """Whether a value is of the kind; Unknown where that depends on what is not known."""
        return value if isinstance(value, Unknown) else self.takes(value)

    def or_null(self) -> ValueKind:
        """The kind, or null. A message does not name null: who leaves a setting empty seldom means to."""
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
    """Whatever is of one type of Python's. json: what JSON Schema calls the type."""

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
    """A list whose entries are of a kind. length: how many there must be, None for any number."""

    entry: ValueKind
    length: int | None = None

    @property
    def words(self) -> str:
        return f"a list{'' if self.length is None else f' of {self.length}'}, each {self.entry.words}"

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
    """Of one of several kinds."""

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
    """Whatever is not of a kind."""

    kind: ValueKind

    @property
    def words(self) -> str:
        return f"anything but {self.kind.words}"

    def accepts(self, value: object) -> bool | Unknown:
        found = self.kind.accepts(value)
        return found if isinstance(found, Unknown) else not found


class _Same(ValueKind):
    """Another look at a kind."""

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
    """A kind in other words than its own."""

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
    """What several answers are together: `by` as soon as one is, else Unknown as soon as one is."""
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
