"""One mapping over another, as in OmegaConf.merge: key by key, with lists and scalars replaced as a whole."""

from __future__ import annotations

from preflight.loaders.document import Entry, Node
from preflight.source.budget import draw_values
from preflight.source.source_file import Span

MISSING = "???"
"""OmegaConf's marker for a missing value."""
WORD = "word"
"""The style of a node that is exactly a word of a command, or part of one: its span can be replaced."""
WORDS = "words"
"""The style of a command node whose text comes from several places, or from none."""


def mapping(entries: tuple[Entry, ...], span: Span) -> Node:
    """A mapping built from entries of others."""
    return Node("mapping", entries, span, "block")


def merge(base: Node, over: Node) -> Node:
    """The values of one mapping over another's. A ??? keeps the value below it. Raises Exceeded."""
    draw_values(len(base.entries) + len(over.entries), over.span.source.name)
    below = {entry.key.value: entry for entry in base.entries if not entry.shadowed}
    if not below:
        return over
    above = {entry.key.value: entry for entry in over.entries if not entry.shadowed}
    merged = [_above(entry, above.pop(entry.key.value, None)) for entry in below.values()]
    return mapping((*merged, *above.values()), over.span)


def _above(below: Entry, above: Entry | None) -> Entry:
    if above is None or (above.value.kind == "scalar" and above.value.value == MISSING):
        return below
    if above.value.kind == below.value.kind == "mapping":
        return above._replace(value=merge(below.value, above.value))
    return above


def without(node: Node, key: str) -> Node:
    """A mapping without a key."""
    if node.get(key) is None:
        return node
    return node._replace(value=tuple(entry for entry in node.entries if entry.key.value != key))


def put(node: Node, path: tuple[str, ...], key: Node, value: Node) -> Node:
    """A tree with a value at a path; missing mappings on the way are created, and scalars replaced."""
    inner = node.get(path[0]) if node.kind == "mapping" else None
    if len(path) > 1:
        below = inner if inner is not None and inner.kind == "mapping" else mapping((), value.span)
        value = put(below, path[1:], key, value)
    elif inner is not None and inner.kind == value.kind == "mapping":
        value = merge(inner, value)
    entries = node.entries if node.kind == "mapping" else ()
    made = Entry(key._replace(value=path[0]) if len(path) == 1 else _key(node, path[0], key), value)
    kept = [made if entry.key.value == path[0] else entry for entry in entries if not entry.shadowed]
    return mapping(tuple(kept) if inner is not None else (*kept, made), node.span)


def _key(node: Node, name: str, typed: Node) -> Node:
    """The key of an intermediate mapping: its own place, otherwise that of the whole path."""
    return next((e.key for e in node.entries if e.key.value == name and not e.shadowed), typed._replace(value=name))


def removed(node: Node, path: tuple[str, ...]) -> Node:
    """A tree without the value at a path."""
    if len(path) == 1:
        return without(node, path[0])
    inner = node.get(path[0])
    if inner is None:
        return node
    entries = tuple(
        entry._replace(value=removed(inner, path[1:])) if entry.key.value == path[0] else entry
        for entry in node.entries
    )
    return node._replace(value=entries)
