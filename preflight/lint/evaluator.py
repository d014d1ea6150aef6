"""Three-valued evaluation of expressions: True, False, a number or text, or Unknown. An unknown value never decides."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial

from preflight.lint.expressions import Expression, Handle
from preflight.loaders.document import UNKNOWN, Unknown
from preflight.run.arguments import Answers, Arguments
from preflight.source.typing_without_import import Any

Reader = Callable[[Handle], Any]
Key = tuple[str, str]


class _Asked(dict[Key, Any]):
    """The result of a function."""

    def __init__(self, read: Reader) -> None:
        self._read = read

    def __missing__(self, key: Key) -> Any:
        return self._read(Handle(*key))


Condition = Callable[[dict[Key, Any]], Any]


def reader(arguments: Arguments) -> Reader:
    """Reads handles from a run's arguments."""
    answers = Answers(arguments)
    return lambda handle: answers[handle.key]


def evaluate(node: object, read: Reader) -> Any:
    """The value of an expression. Unknown for an unknown operand; UNKNOWN if the operands are known but cannot be used:
    an unset option, a wrong type, division by zero.
    """
    return compiled(node)(_Asked(read))


def compiled(node: object) -> Condition:
    """An expression as a function of the values of its handles."""
    if isinstance(node, Handle):
        return operator.itemgetter(node.key)
    if not isinstance(node, Expression):
        return lambda answers: node
    if node.op in ("and", "or"):
        return joined(node.op, [partial(compiled, part) for part in node.parts])
    operate, first, *others = _OPERATORS[node.op], *node.parts
    if not any(isinstance(part, Expression) for part in others):
        return _of_one(operate, compiled(first), others)
    return _strict(operate, [compiled(part) for part in node.parts])


def joined(op: str, makers: Sequence[Callable[[], Condition]]) -> Condition:
    """Conditions under `and` or `or`, each evaluated on demand: usually the first one decides."""
    parts: list[Condition] = []

    def when_asked(number: int, make: Callable[[], Condition]) -> Condition:
        def first_time(answers: dict[Key, Any]) -> Any:
            parts[number] = make()
            return parts[number](answers)

        return first_time

    parts += (when_asked(number, make) for number, make in enumerate(makers))
    return _lazy(parts, decides=op == "or")


def _lazy(parts: Sequence[Condition], *, decides: bool) -> Condition:
    """`and`, decided by a false part, or `or`, decided by a true one; otherwise an unknown part makes it unknown. If
    one part has nothing to compare and another lacks a value, `and` returns the first and `or` the second."""
    other = not decides

    def value_of(answers: dict[Key, Any]) -> Any:
        unknown: Unknown | None = None
        for part in parts:
            value = part(answers)
            if value is other:
                continue
            if value is decides:
                return decides
            if isinstance(value, Unknown):
                first = unknown is None or (unknown is UNKNOWN if decides else value is UNKNOWN)
                unknown = value if first else unknown
            elif bool(value) is decides:
                return decides
        return other if unknown is None else unknown

    return value_of


def _of_one(operate: Callable[..., Any], part: Condition, constants: Sequence[object]) -> Condition:
    """An operator on one value and constants."""

    def value_of(answers: dict[Key, Any]) -> Any:
        value = part(answers)
        if isinstance(value, Unknown):
            return value
        try:
            return operate(value, *constants)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            return UNKNOWN

    return value_of


def _strict(operate: Callable[..., Any], parts: Sequence[Condition]) -> Condition:
    """An operator that needs all of its operands."""

    def value_of(answers: dict[Key, Any]) -> Any:
        values = [part(answers) for part in parts]
        for value in values:
            if isinstance(value, Unknown):
                return value
        try:
            return operate(*values)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            return UNKNOWN

    return value_of


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def ordered(left: Any, right: Any) -> Any:
        numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
        return compare(left, right) if numbers else UNKNOWN

    return ordered


def _bounded_product(left: Any, right: Any) -> Any:
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    return left * right if numbers and max(abs(left), abs(right)) < 1e18 else UNKNOWN


def _nearest_divisor(number: int, near: int, multiple: int) -> Any:
    """The divisor of a number that is nearest to a second number and a multiple of a third; Unknown if there is
    none."""
    if not 0 < number < 1_000_000:
        return UNKNOWN
    found = [d for d in range(max(multiple, 1), number + 1, max(multiple, 1)) if number % d == 0]
    return min(found, key=lambda d: (abs(d - near), d)) if found else UNKNOWN


def _leading_zeros(value: Any) -> Any:
    """The number of leading zeros of a list; none if a single number represents all of it."""
    if not isinstance(value, (list, tuple)):
        return 0
    return next((number for number, one in enumerate(value) if one != 0), len(value))


def _other_divisor(number: int, near: int, multiple: int) -> Any:
    """The nearest divisor on the other side, if it is at most twice as far as the nearest one; otherwise Unknown."""
    nearest = _nearest_divisor(number, near, multiple)
    if nearest is UNKNOWN or nearest == near:
        return UNKNOWN
    found = [d for d in range(max(multiple, 1), number + 1, max(multiple, 1)) if number % d == 0]
    beyond = [d for d in found if (d > near) is not (nearest > near)]
    other = min(beyond, key=lambda d: abs(d - near), default=0)
    return other if other and abs(other - near) <= 2 * abs(nearest - near) else UNKNOWN


def _least(value: Any) -> Any:
    """The smallest number of a list, also of nested lists; a number that represents all of it; Unknown if there is
    none."""
    if not isinstance(value, (list, tuple)):
        return UNKNOWN if value is None else value
    found = [one for one in map(_least, value) if one is not UNKNOWN]
    return min(found) if found else UNKNOWN


_OPERATORS: dict[str, Callable[..., Any]] = {
    "not": operator.not_,
    "==": operator.eq,
    "!=": operator.ne,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "+": operator.add,
    "-": operator.sub,
    "*": _bounded_product,
    "//": operator.floordiv,
    "/": operator.truediv,
    "%": operator.mod,
    "in": lambda value, *choices: value in choices,
    "is a": lambda value, kind: kind.accepts(value),
    "has": lambda value, item: value is not None and item in value,
    "startswith": lambda value, prefix: isinstance(value, str) and value.startswith(prefix),
    "is none": lambda value: value is None,
    "len": lambda value: 0 if value is None else len(value),
    "leading zeros": _leading_zeros,
    "least": _least,
    "count": lambda *values: sum(map(bool, values)),
    "min": min,
    "max": max,
    "nearest divisor": _nearest_divisor,
    "other divisor": _other_divisor,
    "two divisors": lambda *three: _other_divisor(*three) is not UNKNOWN,
    "where": lambda condition, value: value if condition else UNKNOWN,
}
