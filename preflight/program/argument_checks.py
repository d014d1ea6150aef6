"""How the functions of a tree parse and check its arguments: apart or at once, with defaults or without."""

from __future__ import annotations

from collections.abc import Callable

from preflight.program.interpreter import Interpreter
from preflight.program.values import MISSING, Function, Value
from preflight.source.typing_without_import import Any

PARSES, CHECKS = "parse_args", "validate_args"
DEFAULTS = "defaults"
"""The parameter with the defaults of the script."""


def parses_and_checks(find: Callable[[str], Value]) -> bool:
    """Whether one function of a tree does both, as in releases before 3.0. find: looks up a function of its
    arguments."""
    parses = find(PARSES)
    return find(CHECKS) is MISSING and isinstance(parses, Function) and DEFAULTS in parses.node[4][0]


def to_check(run: Interpreter, function: Value, args: Value, defaults: dict[Any, Any]) -> list[Value]:
    """The arguments of the function that checks; the start of a fork whose function takes only one fills in the
    defaults before."""
    if not isinstance(function, Function) or function.node[0] != "FunctionDef" or not _takes_one(function.node[4]):
        return [args, defaults]
    names = run.names_of(args) or {}
    for name, value in defaults.items():
        if names.get(name) is None:
            run.put(names, name, value)
    return [args]


def _takes_one(parameters: Any) -> bool:
    """Whether a function takes exactly one positional argument."""
    return len(parameters[0]) == 1 and parameters[2] is None
