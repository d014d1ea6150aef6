"""Three-valued evaluation of expressions: True, False, a number or text, or Unknown. Unknown never decides."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from preflight.arguments import Arguments
from preflight.constraints.expressions import Expression, Handle
from preflight.document import UNKNOWN, Unknown

Reader = Callable[[Handle], Any]


def reader(arguments: Arguments) -> Reader:
    """Read handles from a run's arguments."""

    def read(handle: Handle) -> Any:
        if handle.view == "effective":
            return arguments.get(handle.name).raw
        if handle.view == "environment":
            value = arguments.environment.get(handle.name)
            return value.raw if value is not None else (UNKNOWN if arguments.open else None)
        value = arguments.given(handle.name)
        if value is not None and value.setting is not None and value.setting.maybe:
            return UNKNOWN
        if value is None:
            return UNKNOWN if arguments.open else (False if handle.view == "given" else None)
        return True if handle.view == "given" else value.raw

    return read


def evaluate(node: object, read: Reader) -> Any:
    """The value of an expression. What cannot be computed (unknown operand, wrong type, division by zero) is Unknown."""
    if not isinstance(node, Expression):
        return node
    if isinstance(node, Handle):
        return read(node)
    if node.op in _LAZY:
        return _LAZY[node.op](node.parts, read)
    values = [evaluate(part, read) for part in node.parts]
    unknown = next((value for value in values if isinstance(value, Unknown)), None)
    if unknown is not None:
        return unknown
    try:
        return _STRICT[node.op](*values)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return UNKNOWN


def _and(parts: Sequence[object], read: Reader) -> Any:
    unknown: Unknown | None = None
    for part in parts:
        value = evaluate(part, read)
        if isinstance(value, Unknown):
            unknown = unknown if unknown is not None else value
        elif not value:
            return False
    return True if unknown is None else unknown


def _or(parts: Sequence[object], read: Reader) -> Any:
    unknown: Unknown | None = None
    for part in parts:
        value = evaluate(part, read)
        if isinstance(value, Unknown):
            unknown = unknown if unknown is not None else value
        elif value:
            return True
    return False if unknown is None else unknown


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def ordered(left: Any, right: Any) -> Any:
        numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
        return compare(left, right) if numbers else UNKNOWN

    return ordered


def _bounded_product(left: Any, right: Any) -> Any:
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    return left * right if numbers and max(abs(left), abs(right)) < 1e18 else UNKNOWN


def _nearest_divisor(number: int, near: int, multiple: int) -> Any:
    """The divisor of a number that is nearest to another one and a multiple of a third; Unknown where there is none."""
    if not 0 < number < 1_000_000:
        return UNKNOWN
    found = [d for d in range(max(multiple, 1), number + 1, max(multiple, 1)) if number % d == 0]
    return min(found, key=lambda d: (abs(d - near), d)) if found else UNKNOWN


_LAZY: dict[str, Callable[[Sequence[object], Reader], Any]] = {"and": _and, "or": _or}
_STRICT: dict[str, Callable[..., Any]] = {
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
    "has": lambda value, item: value is not None and item in value,
    "startswith": lambda value, prefix: isinstance(value, str) and value.startswith(prefix),
    "is none": lambda value: value is None,
    "len": lambda value: 0 if value is None else len(value),
    "count": lambda *values: sum(map(bool, values)),
    "min": min,
    "max": max,
    "nearest divisor": _nearest_divisor,
}
