"""Types of Python's own that stand for classes of the program where an annotation is made."""

from __future__ import annotations

from preflight.program.values import Class, Symbol, Unknown, Value
from preflight.source.hints import Any

STANDS_IN = "_stands_in"
"""What marks a type of Python's own that stands for a class that lies elsewhere."""


def stand_in(value: Value) -> Any:
    """A type of Python's own instead of a class that lies elsewhere, for an annotation."""
    if isinstance(value, (Symbol, Unknown, Class)):
        name = getattr(value, "name", "Any").rpartition(".")[2]
        return standing_in(name if name.isidentifier() else "Any", value if isinstance(value, Class) else None)
    return value


def standing_in(name: str, cls: Class | None = None) -> type:
    """A type of this name that stands for another: a class of the program, or an unknown one."""
    return type(name, (), {STANDS_IN: cls})


def stood_for(value: Value) -> Value:
    """The class of the program that a type stands for, something unknown where it is unknown."""
    if not isinstance(value, type) or STANDS_IN not in vars(value):
        return value
    cls = vars(value)[STANDS_IN]
    return Unknown(gaps=(f"the class {value.__name__}",)) if cls is None else cls
