"""Which elements of an array an expansion takes: ${A[$i]}, ${A[@]:offset:length}, ${@:2}."""

from __future__ import annotations

from preflight.loaders.shell.arithmetic import NotKnown, evaluate
from preflight.loaders.shell.expansion_forms import Form
from preflight.loaders.shell.numbers import number
from preflight.loaders.shell.resolver_interface import Expands
from preflight.loaders.shell.state import State, Variable
from preflight.loaders.shell.word_splitting import Value, text_of
from preflight.source.text import Span


def is_array(state: State, form: Form) -> bool:
    """Whether a form with [@] means a list: bash takes the text of a plain variable."""
    variable = state.get(form.name)
    return form.name in ("@", "*") or (variable is not None and variable.array)


def subscript(expander: Expands, variable: Variable, text: str, span: Span) -> str:
    """The subscript of A[$i], A[i+1], or of an associative array."""
    if variable.keys:
        name = text.lstrip("$").strip("{}")
        other = expander.state.get(name) if text.startswith("$") else None
        return (text_of(other.scalar) or text) if other is not None else text
    try:
        return str(_number(expander, text, span))
    except NotKnown:
        return text


def elements_of(expander: Expands, values: list[Value], operand: str, span: Span) -> list[Value] | None:
    """The values that `offset:length` takes of a list; None where that is not known, or refused by bash."""
    offset, colon, length = operand.partition(":")
    try:
        start = _number(expander, offset.strip() or "0", span)
        count = _number(expander, length.strip() or "0", span) if colon else len(values)
    except NotKnown:
        return None
    start = start + len(values) if start < 0 else start
    if count < 0:
        return None
    return values[start : start + count] if start >= 0 else []


def _number(expander: Expands, text: str, span: Span) -> int:
    return evaluate(text, lambda name: number(expander, name, span))
