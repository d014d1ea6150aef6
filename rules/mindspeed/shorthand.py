"""Message templates that many MindSpeed checks share, such as "not together with" and "only together with"."""

from __future__ import annotations

from preflight.lint.constraint import Constraint, conflicts, requires
from preflight.lint.expressions import Expression, Handle, Handles
from preflight.source.typing_without_import import Any

a = Handles()
"""Arguments of the parser. A test compares their names with the option tables."""

CORE = "mindspeed/features_manager/"
LLM = "mindspeed_llm/features_manager/"

DUALPIPEV = a.schedules_method == "dualpipev"
_SPELT = {"gradient_accumulation_fusion": "--no-gradient-accumulation-fusion"}


def flag(handle: Expression) -> str:
    """The option as people type it."""
    if not isinstance(handle, Handle):
        return "--schedules-method dualpipev" if handle is DUALPIPEV else ""
    return _SPELT.get(handle.name) or "--" + handle.name.replace("_", "-")


def beside(one: Handle, other: Handle, value: str) -> str:
    """The message for an option that does not work with one value of another option."""
    return f"{flag(one)} does not work with {flag(other)} {value}"


def lacks(given: Handle, needed: Handle) -> str:
    """The message for an option that requires another option."""
    return f"{flag(given)} needs {flag(needed)}"


def clash(id: str, one: Expression, other: Expression, *, why: str, upstream: Any = "", **more: Any) -> Constraint:
    """A check that two switches are not both on."""
    message = more.pop("message", f"{flag(one)} does not work with {flag(other)}")
    more.setdefault("at", (*other.handles(), *one.handles()))  # the first fix removes the other
    return conflicts(id, one, other, message=message, why=why, upstream=upstream, **more)


def needs(id: str, given: Expression, needed: Expression, *, why: str, upstream: Any = "", **more: Any) -> Constraint:
    """A check that a switch is only on if another switch is on."""
    message = more.pop("message", f"{flag(given)} needs {flag(needed)}")
    return requires(id, given, needed, message=message, why=why, upstream=upstream, **more)
