"""The changes that the description of a release causes in other releases: if a rule or an option changes there, the
description is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Tables = Mapping[str, Mapping[str, Any]]
"""File name → its content: holds.json and options.json."""


def changed_elsewhere(before: Tables, after: Tables, new: str) -> Iterator[str]:
    """The rules that stop or begin to hold at a release other than the new one, and the options that differ there, in
    words. Releases whose branch has continued are omitted."""
    for rule, there, here in _differing(before["holds.json"], after["holds.json"], "holds", new):
        yield from _lines(f"{rule} no longer holds", [name for name in there if name not in here])
        yield from _lines(f"{rule} now holds", [name for name in here if name not in there])
    for option, there, here in _differing(before["options.json"], after["options.json"], "options", new):
        names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
        yield from _lines(f"{option} is another option", names)


def _lines(what: str, names: list[str]) -> Iterator[str]:
    if names:
        yield f"{what} at {', '.join(names)}"


def _differing(
    before: Mapping[str, Any], after: Mapping[str, Any], table: str, new: str
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Name of a row, with its value per release before and after."""
    same = {name for name, commit in after["commits"].items() if before["commits"].get(name) == commit and name != new}
    pair = (_by_release(before, table, same), _by_release(after, table, same))
    for name in sorted({*pair[0], *pair[1]}):
        there, here = (one.get(name, {}) for one in pair)
        if there != here:
            yield name, there, here


def _by_release(document: Mapping[str, Any], table: str, wanted: set[str]) -> dict[str, dict[str, Any]]:
    """Row → release → its value there, from intervals of release numbers."""
    names = list(document["commits"])
    return {
        row: {
            names[number]: value
            for first, last, *value in spans
            for number in range(first, last + 1)
            if names[number] in wanted
        }
        for row, spans in document[table].items()
    }
