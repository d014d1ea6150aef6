"""The refusals that a contract lists: the conditions under which functions of a front end refuse a config."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

Condition = Any
"""A constant, or a list: an operator and its parts."""


class Row(NamedTuple):
    """A refusal: its file and line, the conditions that all hold, and the sections of keys that begin with a dot."""

    place: str
    when: tuple[Condition, ...]
    sections: tuple[str, ...] = ("",)


def listed(rows: Sequence[Sequence[Any]]) -> Iterator[Row]:
    """The refusals as a contract stores them."""
    for place, when, *sections in rows:
        yield Row(place, tuple(when), tuple(sections[0]) if sections else ("",))


def identity(row: Row) -> str:
    """A refusal without its place, to compare releases."""
    return repr((row.when, row.sections))
