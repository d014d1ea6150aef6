"""Makes schemas/flags/*.json from option tables that were read off the real parsers.

    python tests/dialects/flag_tables.py CATALOG_DIR schemas/flags

A row is "--flag": [dest, type, default, nargs, choices, further spellings], trailing nulls left out.
type: true | false (a switch that stores that), pair (a switch with a --no- spelling), int, float, str, bool (any text
is true), enum (a name out of choices, KeyError otherwise), pattern (an int, or a list expression), ints ("1,2"),
graph (a CUDA graph module), truth (true/false/none), json, swap ("all" or a number), help.
nargs: null one value, "+", "*" or a number. A table with "base" holds what differs from that table; null is an option
that it lacks. An older release of MindSpeed holds what differs from the next one; a catalogue that has no table of it
leaves its file as it is. It is the release with all that its branch has brought since.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TYPES = {
    "enum_type_handler": "enum",
    "_parse_cuda_graph_modules_arg": "graph",
    "moe_freq_type": "pattern",
    "la_freq_type": "pattern",
    "no_rope_freq_type": "pattern",
    "tuple_type": "ints",
    "loads": "json",
    "parse_list_for_virtual_optimizer": "swap",
}
OLDER = ("26.0.0", "2.3.0", "2.2.0")
SWITCH = {
    "_StoreTrueAction": "true",
    "_StoreFalseAction": "false",
    "BooleanOptionalAction": "pair",
    "_HelpAction": "help",
}


def default(raw: Any, text: bool) -> Any:
    """A default as plain data. text: it is Python text."""
    if isinstance(raw, str) and (member := re.match(r"<\w+\.(\w+): ", raw)):
        return member[1]
    if not text:
        return raw
    try:
        return ast.literal_eval(raw)
    except (ValueError, SyntaxError):
        return raw


def kind(flag: str, row: dict[str, Any]) -> str:
    """What an option stores, or how its text is read."""
    if row["action"] in SWITCH:
        return "pair" if f"--no-{flag[2:]}" in (row.get("names") or ()) else SWITCH[row["action"]]
    if row["type"] == "<lambda>":
        return "enum" if flag == "--attention-backend" else "truth"
    return TYPES.get(row["type"], row["type"] or "str")


def compact(flag: str, row: dict[str, Any], text: bool) -> list[Any]:
    """One row."""
    type_ = kind(flag, row)
    nargs: Any = None if type_ in SWITCH.values() else row["nargs"]
    nargs = nargs if nargs in ("+", "*") else int(nargs) if str(nargs).isdigit() and int(nargs) > 1 else None
    choices = row["choices"] if isinstance(row["choices"], list) and type_ not in SWITCH.values() else None
    if choices is not None:
        choices = [int(c) if type_ == "int" else str(c).removeprefix("AttnBackend.") for c in choices]
    names = [name for name in row.get("names") or () if name != flag] or None
    made = [row["dest"], type_, default(row["default"], text), nargs, choices, names]
    while made[-1] is None:
        made.pop()
    return made


def tables(source: Path) -> dict[str, str]:
    """File name → text."""

    def load(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((source / f"flags-{name}.json").read_text())
        return found

    new = {flag: compact(flag, row, True) for flag, row in load("megatron-d98e8a6").items()}
    old = {flag: compact(flag, row, False) for flag, row in load("megatron-0.12.1").items()}
    made = {
        "megatron-0.20.0.json": written({"framework": "megatron", "version": "0.20.0"}, new),
        "megatron-0.12.1.json": written({"framework": "megatron", "version": "0.12.1"}, old),
    }
    for name, file in (("mindspeed", "mindspeed-core"), ("mindspeed-llm", "mindspeed-llm")):
        rows = {flag: compact(flag, row, False) for flag, row in load(file).items()}
        own = {flag: row for flag, row in rows.items() if old.get(flag) != row}
        made[f"{name}-26.1.0.json"] = written({"framework": name, "version": "26.1.0", "base": "megatron-0.12.1"}, own)
        newer = "26.1.0"
        for version in OLDER if (source / f"flags-{file}-{OLDER[-1]}.json").exists() else ():
            before = {flag: compact(flag, row, False) for flag, row in load(f"{file}-{version}").items()}
            differs = {flag: before.get(flag) for flag in {**rows, **before} if before.get(flag) != rows.get(flag)}
            made[f"{name}-{version}.json"] = written(
                {"framework": name, "version": version, "base": f"{name}-{newer}"}, differs
            )
            rows, newer = before, version
    return made


def written(head: dict[str, str], flags: Mapping[str, list[Any] | None]) -> str:
    """One option a line."""
    lines = [f"{json.dumps(flag)}: {json.dumps(row, separators=(',', ':'))}" for flag, row in sorted(flags.items())]
    return (
        "{"
        + "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
        + '"flags": {\n'
        + ",\n".join(lines)
        + "\n}}\n"
    )


if __name__ == "__main__":
    for name, text in tables(Path(sys.argv[1])).items():
        (Path(sys.argv[2]) / name).write_text(text)
