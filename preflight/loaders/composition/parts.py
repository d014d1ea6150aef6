"""What a text with interpolations is made of."""

from __future__ import annotations

from preflight.source.record import NamedTuple


class Malformed(ValueError):
    """A text that the grammar does not have."""


class Literal(NamedTuple):
    """A number, a text, a truth value or null. quoted: it stands in quotes."""

    value: object
    quoted: bool = False


class Text(NamedTuple):
    """Parts that make one text together."""

    parts: tuple[Part, ...]


class Reference(NamedTuple):
    """Another value. up: 0 from the root, 1 beside this value, 2 one level higher, …"""

    up: int
    keys: tuple[Part, ...]


class Call(NamedTuple):
    """A resolver with its arguments."""

    name: str
    arguments: tuple[Part, ...]


class Many(NamedTuple):
    """A list."""

    items: tuple[Part, ...]


class Pairs(NamedTuple):
    """A mapping."""

    pairs: tuple[tuple[Part, Part], ...]


Part = Literal | Text | Reference | Call | Many | Pairs


def has_interpolation(value: object) -> bool:
    """Whether a scalar has an interpolation in it."""
    return isinstance(value, str) and "${" in value
