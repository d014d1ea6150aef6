"""Layers of a network: many are built from arguments that differ only in a number, so one of each kind represents the
rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from preflight.program.decision_recording_integers import Decision, Traced, holds
from preflight.program.values import Class, Names, Object, Symbol, Unknown, Value

SCALARS = (str, float, bool, type(None))
LONGEST, DEEPEST = 64, 3
OUTSIDE = "mindspore.nn"
"""The module of lists of layers: they are filled after they are made, so none is a copy of another one."""
VARIED = 2
"""Numbers that may differ from one layer to the next."""
Key = tuple[Any, ...]


class Built(NamedTuple):
    """A built layer: its numbers, those in which it may differ, and the decisions made with them."""

    made: Object
    numbers: tuple[int, ...]
    varied: tuple[int, ...]
    log: list[Decision]
    given: Value


class Builds(Protocol):
    """The interface of the interpreter that layers need."""

    journals: list[Any]

    def instance_of(self, cls: Class, arguments: list[Value], keywords: Names) -> Value:
        """A new object, set up from the start."""


class Layers:
    """The layers of the network under construction."""

    def __init__(self, run: Builds) -> None:
        self.run = run
        self._built: list[tuple[Any, dict[Key, list[Built]]]] = []
        self._copied: dict[int, tuple[Object, Object]] = {}
        self._done: dict[Key, Value] = {}

    def make(self, cls: Class, given: list[Value], named: Names) -> Value:
        """A layer: a copy of one built with other numbers, if these would have changed nothing."""
        run = self.run
        if not run.journals or any(one.module.name == OUTSIDE for one in cls.lineage):
            return run.instance_of(cls, given, named)
        names = sorted(named)
        values = [*given, *(named[name] for name in names)]
        if any(isinstance(one, Traced) for one in values):
            return run.instance_of(cls, given, named)
        key = (id(cls), len(given), *names, *(_print(one) for one in values))
        new = tuple(one for one in values if type(one) is int)
        rows = self._rows(key)
        for row in rows:
            if _fits(row, new):
                made = _copy(row, new)
                self._copied[id(made)] = (made, row.made)
                return made
        varied = _varied(rows, new)
        log: list[Decision] = []
        traced = iter([Traced.of(one, _nth(at), log) if at in varied else one for at, one in enumerate(new)])
        placed = [next(traced) if type(one) is int else one for one in values]
        found = run.instance_of(cls, placed[: len(given)], dict(zip(names, placed[len(given) :], strict=True)))
        if isinstance(found, Object) and key == (id(cls), len(given), *names, *(_print(one) for one in values)):
            rows.append(Built(found, new, varied, log, values))
        return found

    def once(self, given: list[Value], run: Callable[[], Value]) -> Value:
        """The result of a function on a layer and plain values: it runs for only one of equal layers."""
        layer = given[0] if given else None
        if not isinstance(layer, Object):
            return run()
        first = self._copied.get(id(layer), (layer, layer))[1]
        key = (id(self.run.journals[-1]) if self.run.journals else 0, id(first), *(_print(one, 1) for one in given[1:]))
        if key not in self._done:
            self._done[key] = run()
        return self._done[key]

    def _rows(self, key: Key) -> list[Built]:
        """The layers built on the present path."""
        journals = self.run.journals
        alive = {id(one) for one in journals}
        self._built = [row for row in self._built if id(row[0]) in alive]
        for journal, built in self._built:
            if key in built and journal is not journals[-1]:
                return list(built[key])
        if not self._built or self._built[-1][0] is not journals[-1]:
            self._built.append((journals[-1], {}))
        return self._built[-1][1].setdefault(key, [])


def _nth(at: int) -> Any:
    return lambda numbers: numbers[at]


def _fits(row: Built, new: tuple[int, ...]) -> bool:
    same = all(a == b for at, (a, b) in enumerate(zip(row.numbers, new, strict=True)) if at not in row.varied)
    return same and holds(row.log, new)


def _varied(rows: list[Built], new: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers in which this layer differs from a built one."""
    for row in rows:
        found = tuple(at for at, (a, b) in enumerate(zip(row.numbers, new, strict=True)) if a != b)
        if len(found) <= VARIED:
            return found
    return ()


def _copy(row: Built, new: tuple[int, ...]) -> Object:
    made = Object(row.made.cls)
    made.names = {
        name: value.make(new) if isinstance(value, Traced) else value for name, value in row.made.names.items()
    }
    made.data = row.made.data
    return made


def _print(value: Value, depth: int = 0) -> Key:
    """Distinguishes a value from another one: numbers are omitted; of objects the present contents count."""
    if type(value) is int:
        return ("int",) if depth == 0 else ("int", value)
    if isinstance(value, SCALARS):
        return (type(value), value)
    if isinstance(value, Symbol):
        return ("symbol", value.name)
    if isinstance(value, Unknown):
        return ("unknown", value.facts, value.gaps)
    if isinstance(value, (list, tuple)) and depth < DEEPEST and len(value) <= LONGEST:
        return (type(value), *(_print(one, depth + 1) for one in value))
    if isinstance(value, dict) and depth < DEEPEST and len(value) <= LONGEST:
        return (dict, *((str(name), _print(one, depth + 1)) for name, one in value.items()))
    if isinstance(value, Object) and depth < 1:
        held = _print(value.data, depth + 1) if value.data is not None else ()
        return (id(value), held, *((name, _held(one)) for name, one in value.names.items()))
    return (id(value),)


def _held(value: Value) -> Any:
    return value if isinstance(value, (int, *SCALARS)) else id(value)
