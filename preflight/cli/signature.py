"""Command functions as typer wants them: one parameter an option, the groups of `takes` flattened."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from preflight.cli import completion
from preflight.cli.options import Option, Started

Groups = tuple[Any, ...]
CONTEXT = "ctx"


def declared(hint: Any) -> Any:
    """A type hint with typer's own declaration in place of ours."""
    ours = next((part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Option)), None)
    return hint if ours is None else Annotated[hint.__origin__, _made(ours)]


def _made(ours: Option) -> Any:
    if not ours.names:
        return typer.Argument(**ours.more)
    complete = getattr(completion, ours.completion) if ours.completion else None
    return typer.Option(*ours.names, **ours.more, autocompletion=complete)


def for_typer(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a parameter for every single option, that packs the groups and calls a command function."""
    groups: Groups = getattr(function, "groups", ())
    hints = [get_type_hints(group, include_extras=True) for group in groups]
    flat = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=group._field_defaults[name], annotation=declared(hint)
        )
        for group, names in zip(groups, hints, strict=True)
        for name, hint in names.items()
    ]
    own, started = _own(function, len(groups))

    def command(**given: Any) -> Any:
        packed = [group(*(given.pop(name) for name in group._fields)) for group in groups]
        if started:
            given[started] = given.pop(CONTEXT).obj
        return function(*packed, **given)

    command.__signature__ = inspect.Signature([*flat, *own])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*flat, *own)}
    command.__doc__, command.__name__ = function.__doc__, function.__name__
    return command


def _own(function: Callable[..., Any], groups: int) -> tuple[list[inspect.Parameter], str]:
    """The parameters of a function after its groups, and the name of the one that takes the command after `--`."""
    hints = inspect.get_annotations(function, eval_str=True)  # get_type_hints adds Optional before Python 3.11
    found, started = [], ""
    for parameter in list(inspect.signature(function).parameters.values())[groups:]:
        hint = hints[parameter.name]
        if hint == Started:
            started = parameter.name
            found.append(inspect.Parameter(CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))
        else:
            found.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=declared(hint)))
    return found, started
