"""An argparse parser as rows of data, one per option."""

from __future__ import annotations

import argparse
import enum
import types
from typing import Any

KINDS = {
    "enum_type_handler": "enum",
    "tuple_type": "ints",
    "moe_freq_type": "pattern",
    "la_freq_type": "pattern",
    "no_rope_freq_type": "pattern",
    "_parse_cuda_graph_modules_arg": "graph",
    "parse_list_for_virtual_optimizer": "swap",
    "loads": "json",
}
"""How the text of a value is read, by the name of the function that reads it; other functions keep their name."""
SWITCHES = {
    "_StoreTrueAction": "true",
    "_StoreFalseAction": "false",
    "BooleanOptionalAction": "pair",
    "_HelpAction": "help",
    "_VersionAction": "help",
}


def plain(value: Any) -> Any:
    """A value in JSON, other objects as text."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(one) for one in value]
    return repr(value)


def kind(action: argparse.Action) -> str:
    """The action or type of an option: the name of the function if it is not a plain type."""
    name = type(action).__name__
    if name in SWITCHES:
        return SWITCHES[name]
    if name == "_StoreConstAction":
        return f"const:{plain(action.const)}"
    own = "" if name in ("_StoreAction", "_AppendAction") else f"{name}:"
    if action.type is None:
        return f"{own}str"
    if enums(action):
        return f"{own}enum"
    read = getattr(action.type, "__name__", type(action.type).__name__)
    if read == "<lambda>" and "true" in _words(action.type):
        return f"{own}truth"
    return own + KINDS.get(read, read.strip("<>"))


def enums(action: argparse.Action) -> list[type[enum.Enum]]:
    """The enumerations that form a type, or as which a lambda reads its text."""
    if isinstance(action.type, type):
        return [action.type] if issubclass(action.type, enum.Enum) else []
    if not isinstance(action.type, types.FunctionType) or action.type.__name__ != "<lambda>":
        return []
    named = (action.type.__globals__.get(name) for name in action.type.__code__.co_names)
    return [one for one in named if isinstance(one, type) and issubclass(one, enum.Enum)]


def _words(function: Any) -> list[str]:
    """The texts in comparisons of a function."""
    constants = getattr(getattr(function, "__code__", None), "co_consts", ())
    return [
        word
        for one in constants
        for word in (one if isinstance(one, (tuple, frozenset)) else (one,))
        if isinstance(word, str)
    ]


def choices(action: argparse.Action) -> list[Any] | None:
    """The accepted values of an option: its choices in the parser, otherwise the members of the enumeration and the
    additional words that a lambda accepts."""
    if action.choices is not None:
        return [plain(one) for one in action.choices]
    members = [member.name for one in enums(action) for member in one]
    return members + _words(action.type) if members else None


def row(action: argparse.Action) -> dict[str, Any]:
    """One option, without default attributes."""
    found: dict[str, Any] = {"names": list(action.option_strings), "dest": action.dest, "kind": kind(action)}
    takes = found["kind"] not in SWITCHES.values() and not found["kind"].startswith("const:")
    usual = {"default": None, "nargs": None, "choices": None, "required": False}
    given = {
        "default": plain(action.default),
        "nargs": action.nargs if takes else None,
        "choices": choices(action),
        "required": action.required,
    }
    return {**found, **{name: value for name, value in given.items() if value is not usual[name]}}


def rows(parser: argparse.ArgumentParser) -> list[dict[str, Any]]:
    """Every option of a parser, in its order."""
    return [row(action) for action in parser._actions if action.option_strings]
