"""The entry scripts that releases ship: what each adds to the options, and the defaults that it hands over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from preflight.dialects.megatron.command_words import entry_path
from preflight.dialects.megatron.option_table import Flag
from preflight.dialects.megatron.targets import ENTRIES, versions
from preflight.loaders.document import Document
from preflight.run.request import Target
from preflight.source.record import NamedTuple

PRETRAINS = "pretrain_"
"""How the names of scripts begin that only the framework's own have."""


class Entry(NamedTuple):
    """An entry script as a release has it.

    sure: more than a common name such as train.py says which it is. trains: it trains, so that it needs a learning
    rate.
    """

    place: str
    flags: tuple[Flag, ...]
    defaults: Mapping[str, Any]
    trains: bool
    sure: bool


def shipped_with(target: Target, document: Document) -> Entry | None:
    """The entry script of a launch, where a release has it, and it may add options of its own."""
    path = entry_path(document)
    return None if not path or path.rpartition("/")[2] in ENTRIES else shipped(target, path)


@cache
def shipped(target: Target, path: str) -> Entry | None:
    """The entry script of a release, or of what it is built on, that a path names; of the nearest release that has
    one. None where none has, or several are alike."""
    for framework, release in _stack(target):
        known = _shipped(framework)
        alike = {place: _alike(place, path) for place in known["entries"]}
        most = max(alike.values(), default=0)
        places = [place for place, count in alike.items() if count == most] if most else []
        if len(places) == 1:
            return _entry(known, places[0], release, sure=most > 1 or places[0].startswith(PRETRAINS))
        if places and len({place.rpartition("/")[2] for place in places}) == 1:
            return _any_of([_entry(known, place, release, sure=False) for place in places])
    return None


def _stack(target: Target) -> Iterator[tuple[str, str]]:
    """The frameworks whose entry scripts a run may start, each with its release."""
    if target.framework == "mindspeed-llm":
        yield target.framework, target.version
    yield "megatron", versions(target)["megatron"]


@cache
def _shipped(framework: str) -> dict[str, Any]:
    path = Path(str(import_module("preflight.schemas").__file__)).parent / framework / "entries.json"
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def _alike(place: str, path: str) -> int:
    """How many parts two paths have in common at their ends."""
    ours, theirs = place.split("/")[::-1], path.split("/")[::-1]
    return next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))


def _entry(known: dict[str, Any], place: str, release: str, *, sure: bool) -> Entry:
    names = list(known["commits"])
    number = names.index(release) if release in names else len(names) - 1
    rows = known["entries"][place]
    row = min(rows, key=lambda one: max(one[0] - number, number - one[1], 0))[2]
    flags = tuple(_flag(*known["options"][str(option)]) for option in row["options"])
    return Entry(place, flags, row.get("defaults", {}), row.get("trains", False), sure)


def _any_of(entries: list[Entry]) -> Entry:
    """What may be one of several scripts of the same name: with the options of all, and no defaults of its own."""
    flags = {flag.option: flag for entry in entries for flag in entry.flags}
    return Entry(entries[0].place.rpartition("/")[2], tuple(flags.values()), {}, trains=False, sure=False)


def _flag(option: str, *row: Any) -> Flag:
    dest, kind, default, nargs, choices, also = (*row, *[None] * 6)[:6]
    listed = tuple(choices) if choices is not None else None
    return Flag(option, dest, kind, default, nargs, listed, tuple(also or ()))
