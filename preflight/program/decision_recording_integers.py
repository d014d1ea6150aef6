"""Whole numbers that record the decisions made with them, to determine whether another number would lead to the same
ones."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from preflight.program.values import Value
from preflight.source.typing_without_import import Any

Make = Callable[[Sequence[int]], Any]
Decision = tuple[Make, Any]
"""The computations from the numbers, and their results."""
MOST = 200
"""Decisions that are remembered."""


class Traced(int):
    """A number that remembers computations and comparisons with it."""

    make: Make
    log: list[Decision]

    @classmethod
    def of(cls, value: int, make: Make, log: list[Decision]) -> Traced:
        """A number computed from the numbers of a call."""
        made = cls(value)
        made.make, made.log = make, log
        return made

    def settled(self) -> int:
        """The plain number, if only this exact one is possible."""
        value = int.__add__(self, 0)
        self._note(self.make, value)
        return value

    def _note(self, make: Make, result: Any) -> None:
        if len(self.log) <= MOST:
            self.log.append((make, result))

    def __hash__(self) -> int:
        return hash(self.settled())

    def __bool__(self) -> bool:
        found = int.__bool__(self)
        make = self.make
        self._note(lambda numbers: bool(make(numbers)), found)
        return found

    def __int__(self) -> int:
        return self.settled()

    def __index__(self) -> int:
        return self.settled()

    def __str__(self) -> str:
        return int.__repr__(self)

    __repr__ = __str__


def _compared(sign: Callable[[Any, Any], Any]) -> Any:
    def compare(self: Traced, other: object) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        one, two = self.make, _made(other)
        found = sign(int.__add__(self, 0), _plain(other))
        self._note(lambda numbers: sign(one(numbers), two(numbers)), found)
        return found

    return compare


def _computed(sign: Callable[[Any, Any], Any], reverse: bool) -> Any:
    def compute(self: Traced, other: object) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        one, two = self.make, _made(other)
        values = (int.__add__(self, 0), _plain(other))
        found = sign(*reversed(values)) if reverse else sign(*values)

        def make(numbers: Sequence[int]) -> Any:
            return sign(two(numbers), one(numbers)) if reverse else sign(one(numbers), two(numbers))

        if isinstance(found, int) and not isinstance(found, bool):
            return Traced.of(found, make, self.log)
        self._note(make, found)
        return found

    return compute


def _made(value: Any) -> Make:
    return value.make if isinstance(value, Traced) else lambda numbers: value


def _plain(value: Any) -> Any:
    return int.__add__(value, 0) if isinstance(value, Traced) else value


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Traced, f"__{_name}__", _compared(getattr(operator, _name)))
for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv"):
    setattr(Traced, f"__{_name}__", _computed(getattr(operator, _name), False))
    setattr(Traced, f"__r{_name}__", _computed(getattr(operator, _name), True))


def holds(log: list[Decision], numbers: Sequence[int]) -> bool:
    """Whether other numbers would have led to the same decisions."""
    if len(log) > MOST:
        return False
    try:
        return all(make(numbers) == result for make, result in log)
    except ArithmeticError:
        return False


def settled(value: Value, depth: int = 0) -> Value:
    """A value with plain numbers in it."""
    if isinstance(value, Traced):
        return value.settled()
    if depth < 3 and type(value) in (list, tuple):
        found = [settled(one, depth + 1) for one in value]
        return value if all(a is b for a, b in zip(found, value, strict=True)) else type(value)(found)
    return value
