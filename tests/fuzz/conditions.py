"""Targets that evaluate conditions over odd values: the answer is a plain value or unknown, never an exception."""

from __future__ import annotations

from functools import cache
from typing import Any

from preflight.lint.evaluator import evaluate
from preflight.lint.expressions import Expression, Handle
from preflight.loaders.document import UNKNOWN, Unknown

from . import configs
from .choices import Choices
from .values import NUMBERS, OTHERS, WORDS

_VALUES = (*NUMBERS, *WORDS, *OTHERS, UNKNOWN)
_TWO = (
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "//",
    "/",
    "%",
    "in",
    "has",
    "startswith",
    "and",
    "or",
    "count",
    "min",
    "max",
)
_ONE = ("not", "is none", "len")


def _expression(choices: Choices, depth: int = 0) -> Any:
    if depth > 5 or choices.below(3) == 0:
        return Handle(f"h{choices.below(4)}") if choices.below(2) else choices.of(_VALUES)
    if choices.below(5) == 0:
        return Expression(choices.of(_ONE), _expression(choices, depth + 1))
    return Expression(choices.of(_TWO), _expression(choices, depth + 1), _expression(choices, depth + 1))


def evaluator(choices: Choices) -> None:
    """Random trees over random values."""
    values = {f"h{i}": choices.of(_VALUES) for i in range(4)}
    evaluate(_expression(choices), lambda handle: values[handle.name])


@cache
def _declared() -> tuple[Expression, ...]:
    return tuple(
        rule.refuse for rule in configs.plugins().rules(None) if isinstance(getattr(rule, "refuse", None), Expression)
    )  # type: ignore[attr-defined]


def constraints(choices: Choices) -> None:
    """Declared conditions over random values: with every value unknown or odd,
    the answer is a plain truth or unknown."""
    tree = choices.of(_declared())
    values: dict[str, Any] = {}
    answer = evaluate(tree, lambda handle: values.setdefault(f"{handle.view} {handle.name}", choices.of(_VALUES)))
    assert isinstance(answer, (bool, Unknown, int, float, str, type(None), list, dict)), answer
