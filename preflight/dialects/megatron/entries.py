"""The entry scripts that releases ship: the options and the defaults that each of them adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from preflight import schemas
from preflight.dialects.megatron.command_words import entry_path
from preflight.dialects.megatron.options import Flag
from preflight.dialects.megatron.targets import ENTRIES, versions
from preflight.loaders.document import Document
from preflight.run.request import Target
from preflight.source.hints import Any
from preflight.source.record import NamedTuple

PRETRAINS = "pretrain_"
"""Beginnings of script names that only the framework itself uses."""


class Entry(NamedTuple):
    """An entry script of a release. sure: it is identified by more than a common name such as train.py. trains: it
    trains, so it needs a learning rate.
    """

    place: str
    flags: tuple[Flag, ...]
    defaults: Mapping[str, Any]
    trains: bool
    sure: bool


def shipped_with(target: Target, document: Document) -> Entry | None:
    """The entry script of a launch, if a release contains it and it may add options."""
    path = entry_path(document)
    return None if not path or path.rpartition("/")[2] in ENTRIES else shipped(target, path)


@cache
def shipped(target: Target, path: str) -> Entry | None:
    """The entry script that a path names, in a release or in what it is built on, or in the nearest release that has
    it. None if no release has it."""
    for framework, release in _stack(target):
        known = _shipped(framework)
        number = _number(known, release)
        alike = {place: _alike(place, path) for place in known["entries"]}
        most = max(alike.values(), default=0)
        places = [place for place, count in alike.items() if count == most] if most else []
        there = [place for place in places if _distance(known["entries"][place], number) == 0]
        if places:
            return _any_of([_entry(known, place, number, sure=most > 1) for place in there or places])
    return None


def _stack(target: Target) -> Iterator[tuple[str, str]]:
    """The frameworks whose entry scripts a run may start, each with its release."""
    if target.framework == "mindspeed-llm":
        yield target.framework, target.version
    yield "megatron", versions(target)["megatron"]


@cache
def _shipped(framework: str) -> dict[str, Any]:
    data: dict[str, Any] = schemas.read(f"{framework}/entries")
    return data


def _alike(place: str, path: str) -> int:
    """The number of common parts at the ends of two paths."""
    ours, theirs = place.split("/")[::-1], path.split("/")[::-1]
    return next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))


def _number(known: dict[str, Any], release: str) -> int:
    names = list(known["commits"])
    return names.index(release) if release in names else len(names) - 1


def _distance(rows: list[list[Any]], number: int) -> int:
    """The distance, in releases, to the nearest one that contains an entry script."""
    return int(min(max(first - number, number - last, 0) for first, last, _ in rows))


def _entry(known: dict[str, Any], place: str, number: int, *, sure: bool) -> Entry:
    row = min(known["entries"][place], key=lambda one: _distance([one], number))[2]
    flags = tuple(_flag(*known["options"][str(option)]) for option in row["options"])
    named = place.rpartition("/")[2].startswith(PRETRAINS)
    return Entry(place, flags, row.get("defaults", {}), row.get("trains", False), sure or named)


def _any_of(entries: list[Entry]) -> Entry:
    """The only candidate, or a merged one for several of the same name, with the options of all."""
    first, *others = entries
    if not others:
        return first
    flags = {flag.option: flag for entry in entries for flag in entry.flags}
    defaults = {
        name: raw for name, raw in first.defaults.items() if all(one.defaults.get(name) == raw for one in others)
    }
    trains, sure = all(one.trains for one in entries), all(one.sure for one in entries)
    return Entry(first.place, tuple(flags.values()), defaults, trains, sure)


def _flag(option: str, *row: Any) -> Flag:
    dest, kind, default, nargs, choices, also = (*row, *[None] * 6)[:6]
    listed = tuple(choices) if choices is not None else None
    return Flag(option, dest, kind, default, nargs, listed, tuple(also or ()))
