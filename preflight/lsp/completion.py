"""Completions at the cursor: options and their values in a script, keys, values and patterns in a config."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lsprotocol import types

from preflight.dialects.completion_data import Offer, Offers
from preflight.lsp.buffers import Buffer
from preflight.lsp.hover_and_links import offers_of
from preflight.source.finding import Key

INDENT = re.compile(r"^(\s*)(?:- )?")
KEY = re.compile(r"^(\s*)((?:- )*)(?!- )([\"']?)([^\s:#\"'][^:#]*?)\3\s*:(.*)$")
LAST = re.compile(r"(?:^|[\s=\"'(])(--?[\w-]*)$")
BEFORE = re.compile(r"(?<![\w-])(--[\w-]+)[ =]+(?:[^\s=]\S*)?$")


def completions(buffer: Buffer, text: str, line: int, column: int) -> list[types.CompletionItem]:
    """The completions at a line and a column (from 0, in characters) of the current text."""
    job = buffer.job
    if job is None:
        return []
    offers = offers_of(job)
    lines = text.splitlines() or [""]
    head = lines[line][:column] if line < len(lines) else ""
    if job.documents[0].source.name != buffer.source.name or job.documents[0].launch is not None:
        return _of_script(head, offers)
    return _of_config(lines, line, head, offers)


def _of_script(head: str, offers: Offers) -> list[types.CompletionItem]:
    """Options at the beginning of a word; otherwise the values of the option before the cursor."""
    if begun := LAST.search(head):
        start = begun[1]
        kind = types.CompletionItemKind.Field
        return [_item(name, kind, one.about, name) for name, one in offers.options.items() if name.startswith(start)]
    option = BEFORE.search(head)
    return _values(offers.options.get(option[1], Offer("")).values) if option else []


def _of_config(lines: list[str], line: int, head: str, offers: Offers) -> list[types.CompletionItem]:
    found = KEY.match(head)
    if found is not None:
        key = (*_above(lines, line, len(found[1]) + len(found[2])), found[4].strip())
        return _values(_choices(_at(offers.schema, key)))
    match = INDENT.match(head)
    indent = len(match[0]) if match else 0
    above = _above(lines, line, indent)
    patterns = offers.patterns(above)
    if patterns:
        return [_item(name, types.CompletionItemKind.Value, "operator", _quoted(name)) for name in patterns]
    properties = _properties(_at(offers.schema, above))
    there = _siblings(lines, line, indent)
    kind = types.CompletionItemKind.Property
    return [
        _item(name, kind, str(one.get("description", "")) if isinstance(one, Mapping) else "", f"{name}: ")
        for name, one in properties.items()
        if name not in there
    ]


def _above(lines: list[str], line: int, indent: int) -> Key:
    """The keys above a line with this indent."""
    found: list[str | int] = []
    for text in reversed(lines[:line]):
        match = KEY.match(text)
        if match is None or text.lstrip().startswith("#"):
            continue
        here = len(match[1]) + len(match[2])
        if here < indent:
            found.append(match[4].strip())
            indent = here
    return tuple(reversed(found))


def _siblings(lines: list[str], line: int, indent: int) -> set[str]:
    """The existing keys of the same mapping."""
    found: set[str] = set()
    for part in (reversed(lines[:line]), lines[line + 1 :]):
        for text in part:
            match = KEY.match(text)
            here = len(match[1]) + len(match[2]) if match else len(text) - len(text.lstrip())
            if text.strip() and here < indent:
                break
            if match and here == indent:
                found.add(match[4].strip())
    return found


def _at(schema: Mapping[str, Any], key: Key) -> Mapping[str, Any]:
    """The schema of the value at a key path; empty if undescribed."""
    for part in key:
        schema = _properties(schema).get(str(part), {})
    return schema if isinstance(schema, Mapping) else {}


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The properties of a schema, and of its alternatives."""
    found = dict(schema.get("properties", {}))
    for word in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(word, ()):
            found = {**_properties(one), **found}
    return found


def _choices(schema: Mapping[str, Any]) -> tuple[str, ...]:
    if "enum" in schema:
        return tuple(_spelt(value) for value in schema["enum"] if value != "")
    found = [value for word in ("anyOf", "oneOf") for one in schema.get(word, ()) for value in _choices(one)]
    kinds = schema.get("type", ())
    boolean = kinds == "boolean" or "boolean" in kinds or isinstance(schema.get("default"), bool)
    return (*found, *(("True", "False") if boolean and not found else ()))


def _spelt(value: object) -> str:
    return "null" if value is None else str(value)


def _values(values: Iterable[str]) -> list[types.CompletionItem]:
    return [_item(value, types.CompletionItemKind.EnumMember, "", value) for value in dict.fromkeys(values)]


def _item(label: str, kind: types.CompletionItemKind, detail: str, text: str) -> types.CompletionItem:
    return types.CompletionItem(label, kind=kind, detail=detail or None, insert_text=text)


def _quoted(pattern: str) -> str:
    return f"'{pattern}': True" if "\\" in pattern else f"{pattern}: True"
