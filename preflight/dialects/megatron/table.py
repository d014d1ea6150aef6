"""The options a framework's parser knows at a version, read from compact tables on first use."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from preflight.record import NamedTuple
from preflight.value import Value, default

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

    def flags(self, dest: str) -> tuple[Flag, ...]:
        """The options that write a destination."""
        return tuple(self._dests.get(dest, ()))

    @property
    def label(self) -> str:
        return f"{self.framework} {self.version}"


FILES = {
    ("megatron", "0.20.0"): "megatron-0.20.0",
    ("megatron", "0.12.1"): "megatron-0.12.1",
    ("mindspeed", "26.1.0"): "mindspeed-26.1.0",
    ("mindspeed-llm", "26.1.0"): "mindspeed-llm-26.1.0",
}
OLDER = {(name, version): f"{name}-{version}" for name in ("mindspeed-llm", "mindspeed") for version in ("26.0.0", "2.3.0", "2.2.0")}
"""Releases that a run is read as only where somebody says so: what differs from the next release."""


@cache
def _rows(file: str) -> dict[str, Any]:
    path = Path(str(import_module("preflight.schemas").__file__)).parent / "flags" / f"{file}.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    base = _rows(data["base"])["flags"] if "base" in data else {}
    return {**data, "flags": {option: row for option, row in {**base, **data["flags"]}.items() if row is not None}}


@cache
def table(framework: str, version: str) -> Table:
    """The table of a framework at a version. Raises KeyError when there is none."""
    rows = _rows({**FILES, **OLDER}[framework, version])["flags"]
    return Table(framework, version, (_flag(option, row) for option, row in rows.items()))


def _flag(option: str, row: list[Any]) -> Flag:
    choices = tuple(row[4]) if len(row) > 4 and row[4] is not None else None
    return Flag(option, *row[:4], *([choices] if len(row) > 4 else []), *([tuple(row[5])] if len(row) > 5 else []))


@cache
def destinations() -> frozenset[str]:
    """Every destination that any of the frameworks knows at any version that a run is read as unasked."""
    return frozenset(row[0] for file in FILES.values() for row in _rows(file)["flags"].values())
