"""What a door is: its keys by table, what it sets, what it checks, and what becomes of keys that it does not know."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from preflight.dialects.megatron.namespace import Run, Step
from preflight.dialects.megatron.option_table import Flag, Table, table
from preflight.dialects.megatron.targets import versions
from preflight.dialects.megatron.words import STEPS
from preflight.run.plan import Plan
from preflight.run.request import Target
from preflight.run.value import Value, default
from preflight.source.record import NamedTuple

Steps = Sequence[tuple[Step, tuple[str, ...]]]


class Keys(Table):
    """A door's keys by spelling and by Megatron's name; what it has no key for is as the core release has it."""

    def __init__(self, door: str, release: str, flags: Sequence[Flag], core: Table) -> None:
        super().__init__(door, release, flags)
        self.core = core

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Name → default, of the door where it has a key."""
        own: dict[str, Any] = {}
        for flag in self.options.values():
            if own.get(flag.dest) is None:
                own[flag.dest] = flag.default
        return {**self.core.values, **{dest: default(raw, self.label) for dest, raw in own.items()}}

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The same as plain values."""
        return {dest: value.raw for dest, value in self.values.items()}

    def with_own(self, flags: Iterable[Flag]) -> Keys:
        """The keys with those of a checkout."""
        own = {flag.option: flag for flag in (*self.options.values(), *flags)}
        return Keys(self.framework, self.version, list(own.values()), self.core)


class Door(NamedTuple):
    """A program that starts Megatron, at the release whose sources were read.

    core: the release of Megatron-LM that it needs. world: the devices that train, from the run's own values.
    before, after: what it sets or forces around `steps`, the derivations of Megatron that it runs.
    unread: what becomes of a key that nobody knows: "dropped", "skipped" with a warning, or "refused".
    apart: where the code of Megatron begins that it does not run: checks there are not made.
    elsewhere: beginnings of keys that other parts of the program read. shortened: a key may be cut short as long as it
    is the only one that begins so. models: arguments whose paths name the model that the network is taken from.
    planned: what a plan of its runs has beside what Megatron's arguments say. options: its keys, where preflight has no
    file of them; takes_megatron: whether all options of Megatron are keys beside those. on: what stands between it and
    Megatron. since: its rules that older releases do not have, each with the first that has it. own: its keys with
    those of the checkout around a run. own_checks: rules of all frameworks whose check is its own in its
    runs, each with the file of it.
    """

    name: str
    release: str
    core: str
    world: Callable[[Run], Value] | None = None
    before: Steps = ()
    after: Steps = ()
    steps: Steps = STEPS
    unread: str = "refused"
    apart: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    shortened: bool = False
    options: tuple[Flag, ...] = ()
    takes_megatron: bool = False
    models: tuple[str, ...] = ()
    planned: Callable[[Plan, Run], Plan] | None = None
    on: Target | None = None
    since: Mapping[str, str] = MappingProxyType({})
    own: Keys | None = None
    own_checks: Mapping[str, str] = MappingProxyType({})

    @property
    def versions(self) -> dict[str, str]:
        """Every framework that takes part in its runs; the door is the last."""
        below = versions(self.on) if self.on is not None else {"megatron": self.core}
        return {**below, self.name: self.release}

    @property
    def keys(self) -> Keys:
        """Its keys."""
        if self.options:
            return _given_keys(self.name, self.release, self.core, self.options, self.takes_megatron)
        if self.own is not None:
            return self.own
        return keys(self.name, self.release, self.on or Target("megatron", self.core))

    @property
    def known(self) -> frozenset[str]:
        """Keys that are no mistake though this release does not read them: those of its other releases."""
        return frozenset() if self.options else frozenset(data(self.name).get("other releases", ()))

    def takes_elsewhere(self, key: str, value: str) -> bool:
        """Whether another release has a choice of a key that this one refuses."""
        choices = {} if self.options else data(self.name).get("other choices", {})
        return value in choices.get(key, ())


@cache
def data(door: str) -> dict[str, Any]:
    """The table of a door as its file has it."""
    path = Path(str(import_module("preflight.schemas").__file__)).parent / "doors" / f"{door}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@cache
def keys(door: str, release: str, on: Target) -> Keys:
    """The keys of a door: its own, over all options of what it starts where it takes those."""
    found, below = data(door), table(on.framework, on.version)
    flags = {flag.option: flag for flag in below.options.values()} if found.get("takes megatron") else {}
    for option, raw in found.get("defaults", {}).items():
        flags[option] = flags[option]._replace(default=raw)
    flags |= {flag.option: flag for flag in listed(door, "keys")}
    return Keys(door, release, list(flags.values()), below)


def listed(door: str, part: str) -> list[Flag]:
    """The options that a part of a door's table lists."""
    found = data(door)
    own = (_flag(option, row) for option, row in found[part].items())
    return [_with_dashes(flag) if found.get("dashes") else flag for flag in own]


@cache
def _given_keys(door: str, release: str, core: str, options: tuple[Flag, ...], takes_megatron: bool) -> Keys:
    """The keys of a door that says them itself."""
    below = table("megatron", core)
    flags = {flag.option: flag for flag in (*(below.options.values() if takes_megatron else ()), *options)}
    return Keys(door, release, list(flags.values()), below)


def _flag(option: str, row: list[Any]) -> Flag:
    dest, kind, raw, nargs, choices, also = (*row, *[None] * 6)[:6]
    return Flag(option, dest, kind, raw, nargs, tuple(choices) if choices is not None else None, tuple(also or ()))


def _with_dashes(flag: Flag) -> Flag:
    """An option that is taken with hyphens for underscores, too."""
    other = f"--{flag.option[2:].replace('_', '-')}"
    return flag if other == flag.option else flag._replace(also=(*flag.also, other))


def names(door: str) -> frozenset[str]:
    """The names that a door's own checks may use beside Megatron's."""
    return frozenset(row[0] for row in data(door)["keys"].values())
