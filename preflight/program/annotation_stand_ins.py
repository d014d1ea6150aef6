"""Python types that represent classes of the program in annotations."""

from __future__ import annotations

from preflight.program.values import Class, Symbol, Unknown, Value
from preflight.source.typing_without_import import Any

STANDS_IN = "_stands_in"
"""Marks a Python type that represents a class defined elsewhere."""


def stand_in(value: Value) -> Any:
    """A Python type in an annotation that represents a class defined elsewhere."""
    if isinstance(value, (Symbol, Unknown, Class)):
        name = getattr(value, "name", "Any").rpartition(".")[2]
        return standing_in(name if name.isidentifier() else "Any", value if isinstance(value, Class) else None)
    return value


def standing_in(name: str, cls: Class | None = None) -> type:
    """A type of this name that represents another one: a class of the program, or an unknown one."""
    return type(name, (), {STANDS_IN: cls})


def stood_for(value: Value) -> Value:
    """The class of the program behind a type, or an unknown object."""
    if not isinstance(value, type) or STANDS_IN not in vars(value):
        return value
    cls = vars(value)[STANDS_IN]
    return Unknown(gaps=(f"the class {value.__name__}",)) if cls is None else cls
