"""The pynative schema over a document: schemas/mindformers/pynative.json, walked for the few words it uses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from preflight.lint.scalar_kinds import TEXT, Number, whole
from preflight.lint.value_kinds import LIST, MAPPING, NULL, SWITCH, ValueKind
from preflight.loaders.document import Entry, Node
from preflight.source.finding import Key
from preflight.source.record import NamedTuple

_CONFIG = "mindformers/pynative/config/config.py"
_CHECK = "mindformers/pynative/config/utils.py"
_SCALARS = {"boolean": 98, "integer": 103, "number": 108, "string": 113}
_KINDS: Mapping[str, ValueKind] = {
    "object": MAPPING,
    "array": LIST,
    "boolean": SWITCH.worded("true or false"),
    "integer": whole().worded("an integer"),
    "number": Number(),
    "string": TEXT,
    "null": NULL,
}
"""The types of JSON Schema as the framework tells them: a bool is no integer, an integer is a number."""
_COMPARED = frozenset(  # compared while the section is made, before types are looked at
    {
        ("training", "global_batch_size"),
        ("training", "local_batch_size"),
        ("training", "max_consecutive_skipped_steps"),
        ("parallelism", "tensor_parallel"),
        ("profiler", "start_step"),
        ("profiler", "end_step"),
        ("lora_config", "lora_rank"),
        ("lora_config", "lora_alpha"),
        ("lora_config", "lora_dropout"),
        ("inference", "max_new_tokens"),
        ("inference", "batch_size"),
    }
)


class Fault(NamedTuple):
    """One place where a document does not follow the schema.

    kind: unknown, type or missing. choices: the names there are. accepted: the kinds that the place takes, where its
    type is wrong.
    """

    kind: str
    key: Key
    node: Node
    wanted: str
    upstream: str
    choices: tuple[str, ...] = ()
    accepted: tuple[ValueKind, ...] = ()


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """The JSON Schema of the dialect."""
    path = Path(str(import_module("preflight.schemas").__file__)).parent / "mindformers" / "pynative.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


@lru_cache(maxsize=1)
def defaults() -> dict[str, Any]:
    """Dotted name → default, for every field that has one."""
    found: dict[str, Any] = {}

    def walk(part: dict[str, Any], prefix: str) -> None:
        for name, field in part.get("properties", {}).items():
            if "default" in field:
                found[prefix + name] = field["default"]
            walk(field, f"{prefix}{name}.")

    walk(schema(), "")
    return found


def faults(tree: Node) -> Iterator[Fault]:
    """Every place where a document does not follow the schema, in reading order."""
    yield from _object(tree, schema(), ())


def _object(node: Node, part: dict[str, Any], key: Key) -> Iterator[Fault]:
    fields: dict[str, Any] = part.get("properties", {})
    present = set()
    for entry in node.entries:
        if entry.shadowed:
            continue
        name = entry.key.value
        present.add(name)
        if isinstance(name, str) and name in fields:
            yield from _value(entry.value, fields[name], (*key, name))
        elif part.get("additionalProperties") is False:
            yield Fault("unknown", (*key, str(name)), entry.key, "", f"{_CONFIG}:115", tuple(fields))
    for name in part.get("required", ()):
        if name not in present and "properties" not in fields[name]:
            yield Fault("missing", (*key, name), node, name, f"{_CHECK}:33")
        elif name not in present:
            inner = fields[name].get("required", ("",))[0]
            yield Fault("missing", (*key, name), node, f"{name} (with {inner})" if inner else name, f"{_CHECK}:33")


def _value(node: Node, part: dict[str, Any], key: Key) -> Iterator[Fault]:
    wanted = part.get("type")
    if wanted is None:
        return
    kinds = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    here = [kind for kind in kinds if _KINDS[kind].takes(_held(node))]
    if not here:
        accepted = tuple(_KINDS[kind] for kind in kinds)
        words = " or ".join(kind.words for kind in accepted)
        yield Fault("type", key, node, words, _place(node, kinds, key), accepted=accepted)
    elif "object" in here:
        yield from _object(node, part, key)
    elif "array" in here and "items" in part:
        found = [fault for index, item in enumerate(node.items) for fault in _value(item, part["items"], (*key, index))]
        union = len(kinds) > 1 and bool(found)
        yield from (fault._replace(upstream=f"{_CHECK}:68") if union else fault for fault in found)


def _held(node: Node) -> object:
    """What a node holds, as far as its type counts: a mapping and a list without their entries."""
    return {} if node.kind == "mapping" else [] if node.kind == "sequence" else node.value


def _place(node: Node, kinds: tuple[str, ...], key: Key) -> str:
    """The line that refuses a type."""
    if key in _COMPARED and not isinstance(node.value, (bool, int, float)):
        return f"{_CONFIG}:110"
    if len(kinds) > 1:
        return f"{_CHECK}:{87 if 'object' in kinds else 68}"
    if node.value is None:
        return f"{_CHECK}:33"
    if kinds[0] == "object" and isinstance(key[-1], str):
        return f"{_CHECK}:87"
    return f"{_CHECK}:{_SCALARS.get(kinds[0], 76 if kinds[0] == 'array' else 87)}"


def strangers(tree: Node) -> Iterator[Entry]:
    """Top-level keys that nothing reads: the top level accepts every name."""
    known = schema()["properties"]
    for entry in tree.entries:
        if not entry.shadowed and entry.key.value not in known:
            yield entry
