"""The rows of a front end's table, and the layout of its file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from preflight.program.checkout.parser_options import OwnOption

SCHEMAS = Path(__file__).parents[2] / "schemas" / "frontends"
Row = list[Any]

Extract = Callable[[Callable[[str], str]], dict[str, Any]]


def row(one: OwnOption) -> Row:
    """An option as a row of the table: its destination, kind, default, number of values, choices, other spellings."""
    kind = one.kind or ("json" if isinstance(one.default, str) and one.default.startswith("{") else "str")
    default = False if kind == "true" else True if kind == "false" else one.default
    also = (f"--no-{one.option[2:]}",) if kind == "pair" else one.also
    found: Row = [one.dest, kind, default, one.nargs, one.choices, also or None]
    while found and found[-1] is None and len(found) > 3:
        found.pop()
    return found


def without_targets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_targets(inner) for key, inner in value.items() if key != "_target_"}
    return value


def paths(tree: dict[str, Any], above: str = "") -> Iterator[str]:
    for key, value in tree.items():
        yield above + key
        if isinstance(value, dict):
            yield from paths(value, f"{above}{key}.")


def value_lines(value: Any) -> str:
    """A mapping with one line per key; anything else on one line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    rows = (f"    {json.dumps(key)}: {json.dumps(value[key])}" for key in sorted(value))
    return "{\n" + ",\n".join(rows) + "\n  }"
