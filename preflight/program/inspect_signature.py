"""The result of inspect.signature for functions and classes of the program."""

from __future__ import annotations

import inspect

from preflight.program.iterable_functions import Sequences
from preflight.program.values import MISSING, Bound, Class, Function, Names, Symbol, Unknown, Value


class Signatures(Sequences):
    """How a signature is made."""

    def signature(self, given: list[Value], named: Names) -> Value:
        """The parameters of a function or class, without values."""
        function = given[0].function if isinstance(given[0], Bound) else given[0]
        rows: list[str] = []
        kinds = inspect.Parameter
        if isinstance(function, Symbol):
            found = self.facts.parameters(function.name)
            if isinstance(found, Unknown):
                return found
            rows = found or []
        if isinstance(function, Class):
            method = function.find("__init__")
            while isinstance(method, Function) and method.names.get("__wrapped__") is not None:
                method = method.names["__wrapped__"]
            rows = list(function.fields or {})
            function = method if isinstance(method, Function) else None
        if isinstance(function, Function) and not isinstance(given[0], Class):
            while isinstance(function.names.get("__wrapped__"), Function):
                function = function.names["__wrapped__"]
            return inspect.Signature(_parameters(function)[1 if isinstance(given[0], Bound) else 0 :])
        if isinstance(function, Function):
            shape = function.node[4]
            rows = [*shape[0][1:], *shape[3]]
        elif not rows:
            return self.gap("a signature")
        return inspect.Signature([kinds(name, kinds.KEYWORD_ONLY) for name in dict.fromkeys(rows)])


def _parameters(function: Function) -> list[inspect.Parameter]:
    """The parameters of a function, with their kinds and defaults."""
    positional, hidden, rest, named, _, others, _ = function.node[4 if function.node[0] == "FunctionDef" else 3]
    made, empty = inspect.Parameter, inspect.Parameter.empty
    first = len(positional) - len(function.defaults)
    found = [
        made(
            name,
            made.POSITIONAL_ONLY if at < hidden else made.POSITIONAL_OR_KEYWORD,
            default=function.defaults[at - first] if at >= first else empty,
        )
        for at, name in enumerate(positional)
    ]
    if rest is not None:
        found.append(made(rest, made.VAR_POSITIONAL))
    for name, default in zip(named, function.keyword_defaults, strict=False):
        found.append(made(name, made.KEYWORD_ONLY, default=empty if default is MISSING else default))
    if others is not None:
        found.append(made(others, made.VAR_KEYWORD))
    return found
