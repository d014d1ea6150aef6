"""The fix that the shape of a refusal implies, where there is only one."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from preflight.run.arguments import Arguments
from preflight.source.finding import Change, Fix, Safety
from preflight.source.pattern import lazy_pattern

_LACKS = lazy_pattern(r"not ([A-Za-z_]\w*)")
_NOT_EQUAL = lazy_pattern(
    r"(?P<value>'[^']*'|-?\d+) != (?P<name>[A-Za-z_]\w*)|(?P<n>[A-Za-z_]\w*) != (?P<v>'[^']*'|-?\d+)"
)
_NOT_ONE_OF = lazy_pattern(r"([A-Za-z_]\w*) not in ([\[(].*[\])])")


def implied_fix(condition: Iterable[str], arguments: Arguments) -> Fix | None:
    """The fix for a condition under which a program refuses: what is needed is switched on, or becomes the only value
    that is taken.

    condition: its parts, all of which hold. Where several parts could be changed, there is no fix that is certain.
    """
    ways = [way for part in condition if (way := _way(part, arguments)) is not None]
    if len(ways) != 1:
        return None
    name, value = ways[0]
    edits = arguments.put(name, value)
    if not edits:
        return None
    shown = arguments.spell(name) if value is True else f"{arguments.spell(name)} {value}"
    title = f"add {shown}" if arguments.given(name) is None else f"set {shown}"
    change = Change.COMPLETION if arguments.given(name) is None else Change.SWITCH
    return Fix(title, tuple(edits), Safety.UNSAFE, change)


def _way(part: str, arguments: Arguments) -> tuple[str, object] | None:
    """An argument and the value that it needs, for one part of a condition."""
    known = set(arguments.names())
    if (lacks := _LACKS.fullmatch(part)) is not None:
        name, value = lacks[1], arguments.get(lacks[1])
        off = value.known and value.raw in (False, None) and arguments.given(name) is None
        return (name, True) if name in known and off and _is_switch(name, arguments) else None
    if (other := _NOT_EQUAL.fullmatch(part)) is not None:
        name, text = other["name"] or other["n"], other["value"] or other["v"]
        return (name, ast.literal_eval(text)) if name in known else None
    if (outside := _NOT_ONE_OF.fullmatch(part)) is not None and outside[1] in known:
        try:
            values = ast.literal_eval(outside[2])
        except (ValueError, SyntaxError):
            return None
        return (outside[1], values[0]) if len(values) == 1 else None
    return None


def _is_switch(name: str, arguments: Arguments) -> bool:
    """Whether an argument is switched on by its option alone."""
    return all(edit.action == "set" and edit.value in (None, True) for edit in arguments.put(name, True))
