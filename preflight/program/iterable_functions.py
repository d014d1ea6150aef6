"""Python functions that take iterables: all, map, sorted, zip and similar ones."""

from __future__ import annotations

from preflight.program.stdlib_functions import OPAQUE, Natives, Special
from preflight.program.values import (
    Names,
    Unknown,
    Value,
    both,
)
from preflight.source.typing_without_import import Any

SPREAD = (list, tuple, set, frozenset, enumerate, reversed, zip, sum)


class Cycle:
    """Repeated items, for zip."""

    def __init__(self, items: list[Value]) -> None:
        self.items = items


class Sequences(Natives):
    """One method per function."""

    def _spread_first(self, kind: Any) -> Special:
        """A function that takes iterables: those of the program are read first."""

        def run(given: list[Value], named: Names) -> Value:
            if not given:
                return self.native(kind, [], named)
            rows: list[Any] = []
            count = len(given) if kind is zip else 1
            for one in given[:count]:
                items = one.items if isinstance(one, Cycle) else self.items(one)
                if isinstance(items, Unknown):
                    return items
                rows.append(items)
            if any(isinstance(one, Cycle) for one in given[:count]):
                length = max(
                    (len(row) for row, one in zip(rows, given, strict=False) if not isinstance(one, Cycle)), default=0
                )
                rows = [(row * (length // max(len(row), 1) + 1))[:length] for row in rows]
            if kind in (set, frozenset, sum) and any(isinstance(one, OPAQUE) for one in rows[0]):
                return self._added(rows[0]) if kind is sum else self._set_of(rows[0])
            if any(isinstance(one, Unknown) for one in [*given[count:], *named.values()]):
                return both(*given[count:], *named.values())
            found = self.native(kind, [*rows, *given[count:]], named)
            return found if kind in (list, tuple, set, frozenset, sum) else list(found)

        return run

    def _cycle(self, given: list[Value], named: Names) -> Value:
        items = self.items(given[0])
        return items if isinstance(items, Unknown) else Cycle(items)

    def _set_of(self, items: list[Value]) -> Value:
        if any(isinstance(one, Unknown) for one in items):
            return both(*items)
        return self.native(set, [items])

    def _added(self, items: list[Value]) -> Value:
        total: Value = 0
        for one in items:
            total = self.arithmetic("Add", total, one)
        return total

    def _map(self, given: list[Value], named: Names) -> Value:
        rows = [self.items(one) for one in given[1:]]
        unknown = next((row for row in rows if isinstance(row, Unknown)), None)
        if unknown is not None:
            return unknown
        return [self.call(given[0], list(row), {}) for row in zip(*rows, strict=False)]

    def _filter(self, given: list[Value], named: Names) -> Value:
        rows = self.items(given[1])
        if isinstance(rows, Unknown):
            return rows
        found = []
        for one in rows:
            truth = self.truth(self.call(given[0], [one], {}) if given[0] is not None else one)
            if isinstance(truth, Unknown):
                return truth
            if truth:
                found.append(one)
        return found

    def _sorted(self, given: list[Value], named: Names) -> Value:
        rows = self.items(given[0])
        return rows if isinstance(rows, Unknown) else self.sort(rows, named)

    def _extreme(self, function: Any, given: list[Value], named: Names) -> Value:
        rows = self.items(given[0]) if len(given) == 1 else list(given)
        if isinstance(rows, Unknown):
            return rows
        if not rows and "default" in named:
            return named["default"]
        keys = [self.call(named["key"], [one], {}) for one in rows] if named.get("key") is not None else rows
        if any(self.opaque(one) for one in keys):
            return self.cause_of(keys)
        at = self.native(function, [range(len(rows))], {"key": keys.__getitem__})
        return rows[at]

    def _every(self, given: list[Value], wanted: bool) -> Value:
        rows = self.items(given[0])
        if isinstance(rows, Unknown):
            return rows
        unsure: Unknown | None = None
        for one in rows:
            truth = self.truth(one)
            if isinstance(truth, Unknown):
                unsure = truth
            elif truth is not wanted:
                return not wanted
        return wanted if unsure is None else unsure

    def _iter(self, given: list[Value], named: Names) -> Value:
        return self.items(given[0])

    def _next(self, given: list[Value], named: Names) -> Value:
        rows = self.items(given[0])
        if isinstance(rows, Unknown):
            return rows
        if isinstance(given[0], list) and rows:
            return rows[0]
        if len(given) > 1 and not rows:
            return given[1]
        return self.gap("next()")

    def _reduce(self, given: list[Value], named: Names) -> Value:
        rows = self.items(given[1])
        if isinstance(rows, Unknown):
            return rows
        rows = [*given[2:3], *rows]
        total = rows[0] if rows else None
        for one in rows[1:]:
            total = self.call(given[0], [total, one], {})
        return total
