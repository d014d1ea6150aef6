"""The options a framework's parser knows at a version, read from compact tables on first use."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from preflight.run.value import Value, default
from preflight.source.record import NamedTuple

SWITCHES = ("true", "false", "pair", "help")


class Flag(NamedTuple):
    """One option. kind: what it stores or how its text is read; nargs: None for one value, "+", "*" or a number.

    also: further spellings that mean the same, or the negated spelling of a pair.
    """

    option: str
    dest: str
    kind: str
    default: Any = None
    nargs: str | int | None = None
    choices: tuple[Any, ...] | None = None
    also: tuple[str, ...] = ()

    @property
    def switch(self) -> bool:
        """It takes no value."""
        return self.kind in SWITCHES

    def stores(self, spelling: str) -> bool:
        """What a switch stores when it is spelt this way."""
        return self.kind == "true" or (self.kind == "pair" and spelling == self.option)


class Table:
    """Every option of one framework at one version, by spelling and by destination."""

    def __init__(self, framework: str, version: str, flags: Iterable[Flag]) -> None:
        self.framework, self.version = framework, version
        self.options: dict[str, Flag] = {}
        self._dests: dict[str, list[Flag]] = {}
        for flag in flags:
            for spelling in (flag.option, *flag.also):
                self.options[spelling] = flag
            self._dests.setdefault(flag.dest, []).append(flag)

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """Destination → default; of several options for one destination the first that has a default says it."""
        return {dest: next((f.default for f in flags if f.default is not None), None) for dest, flags in self._dests.items()}

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """The same as values."""
        return {dest: default(raw, self.label) for dest, raw in self.defaults.items()}

    @cached_property
    def lower(self) -> Mapping[str, str]:
        """Spelling in lower case → spelling."""
        return {spelling.lower(): spelling for spelling in self.options}

    @cached_property
    def _ends(self) -> Mapping[tuple[str, bool], list[tuple[int, str]]]:
        """The first or the last five characters → spellings with their places in the table."""
        found: dict[tuple[str, bool], list[tuple[int, str]]] = {}
        for place, spelling in enumerate(self.options):
            found.setdefault((spelling[:5], True), []).append((place, spelling))
            found.setdefault((spelling[-5:], False), []).append((place, spelling))
        return found

    def alike(self, text: str) -> tuple[str, ...]:
        """The options that begin or end like a text, in the order of the table."""
        some = {*self._ends.get((text[:5], True), ()), *self._ends.get((text[-5:], False), ())}
        return tuple(spelling for _, spelling in sorted(some))

    def flags(self, dest: str) -> tuple[Flag, ...]:
        """The options that write a destination."""
        return tuple(self._dests.get(dest, ()))

    def with_flags(self, flags: Iterable[Flag]) -> Table:
        """A table in which some options are added, or read in another way."""
        changed = {flag.option: flag for flag in flags}
        kept = {flag.option: flag for flag in self.options.values()}
        return Table(self.framework, self.version, {**kept, **changed}.values())

    @property
    def label(self) -> str:
        return f"{self.framework} {self.version}"


MEGATRON = (
    *("0.20.0", "0.19.0", "0.18.0", "0.17.0", "0.16.0", "0.15.0", "0.14.0", "0.13.0", "0.12.1", "0.11.0", "0.10.0"),
    *("0.9.0", "0.8.0", "0.7.0", "0.6.0"),
)
"""The releases of Megatron-LM that are described, the newest first; 0.20.0 is main at the commit that releases.json names."""

UNASKED = (("megatron", "0.20.0"), ("megatron", "0.12.1"), ("mindspeed", "26.1.0"), ("mindspeed-llm", "26.1.0"))
ASKED = (
    *(("megatron", version) for version in MEGATRON if ("megatron", version) not in UNASKED),
    *((name, version) for name in ("mindspeed-llm", "mindspeed") for version in ("26.0.0", "2.3.0", "2.2.0")),
)
"""Releases that a run is read as only where somebody says so."""


def _schemas() -> Path:
    return Path(str(import_module("preflight.schemas").__file__)).parent


@cache
def _intervals() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((_schemas() / "megatron" / "options.json").read_text(encoding="utf-8"))
    return data


def releases_with(option: str) -> tuple[str, ...]:
    """The releases of Megatron-LM that have an option, oldest first."""
    names = tuple(_intervals()["commits"])
    spans = _intervals()["options"].get(option, ())
    return tuple(name for number, name in enumerate(names) if any(first <= number <= last for first, last, _ in spans))


def releases_that_take(typed: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    """The releases of Megatron-LM whose parsers have all these options and take these values for them, oldest first.

    An option, or a value, that no release takes says nothing of which release it is.
    """
    names = tuple(_intervals()["commits"])
    possible = set(range(len(names)))
    for option, value in typed:
        spans = _intervals()["options"].get(option, ())
        known = {number for first, last, _ in spans for number in range(first, last + 1)}
        taken = {number for first, last, row in spans if _takes(row, value) for number in range(first, last + 1)}
        possible &= taken or known or possible
    return tuple(names[number] for number in sorted(possible))


def _takes(row: list[Any], value: str | None) -> bool:
    """Whether an option takes a value, as far as its choices tell."""
    choices = row[4] if len(row) > 4 else None
    return value is None or choices is None or any(str(choice) == value for choice in choices)


@cache
def _rows(framework: str, version: str) -> dict[str, Any]:
    """The options of a framework at a version, by spelling."""
    if framework == "megatron":
        number = list(_intervals()["commits"]).index(version)
        spans = _intervals()["options"].items()
        return {option: row for option, rows in spans for first, last, row in rows if first <= number <= last}
    path = _schemas() / "flags" / f"{framework}-{version}.json"
    return _over(json.loads(path.read_text(encoding="utf-8")))


def _over(data: dict[str, Any]) -> dict[str, Any]:
    base = _rows(*data["base"].rsplit("-", 1)) if "base" in data else {}
    return {option: row for option, row in {**base, **data["flags"]}.items() if row is not None}


@cache
def table(framework: str, version: str) -> Table:
    """The table of a framework at a version. Raises KeyError when there is none."""
    if (framework, version) not in (*UNASKED, *ASKED):
        raise KeyError((framework, version))
    return Table(framework, version, (_flag(option, row) for option, row in _rows(framework, version).items()))


def _flag(option: str, row: list[Any]) -> Flag:
    choices = tuple(row[4]) if len(row) > 4 and row[4] is not None else None
    more = [tuple(row[5])] if len(row) > 5 and row[5] is not None else []
    return Flag(option, *row[:4], *([choices] if len(row) > 4 else []), *more)


@cache
def destinations() -> frozenset[str]:
    """Every destination that any of the frameworks knows at any version."""
    own = {row[0] for rows in _intervals()["options"].values() for _, _, row in rows}
    return frozenset(own.union(row[0] for known in UNASKED if known[0] != "megatron" for row in _rows(*known).values()))
