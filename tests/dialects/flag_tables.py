"""Option tables that were read off the real parsers, as rows of schemas/FRAMEWORK/options.json.

A row is [dest, type, default, nargs, choices, additional spellings], trailing nulls left out. type: true | false (a
switch that stores that), pair (a switch with a --no- spelling), int, float, str, bool (any text is true), enum (a name
out of choices, KeyError otherwise), pattern (an int, or a list expression), ints ("1,2"), graph (a CUDA graph module),
truth (true/false/none), json, swap ("all" or a number), help. nargs: null one value, "+", "*" or a number.
"""

from __future__ import annotations

import ast
import json
import re
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
FILES = {
    ("megatron", "0.20.0"): "flags-megatron-d98e8a6.json",
    ("megatron", "0.12.1"): "flags-megatron-0.12.1.json",
    ("mindspeed", "master"): "flags-mindspeed-core.json",
    ("mindspeed-llm", "master"): "flags-mindspeed-llm.json",
}
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
    """The value that an option stores, or how its text is read."""
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


def rows(catalogue: Path, framework: str, version: str) -> dict[str, list[Any]]:
    """The options of a release by spelling, as its parser registers them."""
    file = FILES[framework, version]
    read: dict[str, Any] = json.loads((catalogue / file).read_text(encoding="utf-8"))
    return {flag: compact(flag, row, "d98e8a6" in file) for flag, row in read.items()}
