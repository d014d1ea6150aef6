"""A config as the framework loads it: nesting bounded, base_config merged, every value by its dotted name."""

from __future__ import annotations

from typing import NamedTuple

from preflight.arguments import REMOVE
from preflight.dialects import Surroundings
from preflight.document import Document, Entry, Node, Problem, Setting
from preflight.finding import Edit, Key
from preflight.value import Origin, Value

MAX_NESTING = 10
MAX_BASES = 20


class Loaded(NamedTuple):
    """The merged tree, every document it came from (the first is the config itself), faults of loading, and names of bases not read."""

    tree: Node
    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]
    missing: tuple[str, ...] = ()


def nesting(node: Node) -> int:
    """How deep mappings nest; lists end the count, as in the framework's own check."""
    deepest, stack = 0, [(node, 0)]
    while stack:
        current, depth = stack.pop()
        deepest = max(deepest, depth)
        stack += [(entry.value, depth + 1) for entry in current.entries]
    return deepest


def load(document: Document, surroundings: Surroundings) -> Loaded:
    """The tree of a document with its base configs below it."""
    assert document.tree is not None
    documents: list[Document] = [document]
    problems: list[Problem] = []
    missing: list[str] = []

    def merge(current: Document, above: tuple[str, ...]) -> Node:
        tree = current.tree
        assert tree is not None
        bases = tree.get("base_config")
        if bases is None:
            return tree
        base = Node("mapping", (), tree.span)
        for name in bases.items or (bases,):
            found = surroundings.read(current, str(name.value)) if isinstance(name.value, str) and len(above) < MAX_BASES else None
            if found is None or found.tree is None or found.source.name in above:
                missing.append(str(name.value))
                continue
            documents.append(found)
            base = _update(base, merge(found, (*above, found.source.name)))
        own = tuple(entry for entry in tree.entries if entry.key.value != "base_config")
        return _merge(Node("mapping", own, tree.span, tree.style), base)

    tree = merge(document, (document.source.name,))
    return Loaded(tree, tuple(documents), tuple(problems), tuple(missing))


def _update(base: Node, more: Node) -> Node:
    """Whole top-level keys of a later base replace those of an earlier one."""
    names = {entry.key.value for entry in more.entries}
    return Node("mapping", (*(e for e in base.entries if e.key.value not in names), *more.entries), base.span)


def _merge(child: Node, base: Node) -> Node:
    """The child's values over the base's, mapping by mapping."""
    have = {entry.key.value: entry for entry in base.entries if not entry.shadowed}
    entries = [e for e in base.entries if child.get(e.key.value) is None]  # type: ignore[arg-type]
    for entry in child.entries:
        below = have.get(entry.key.value)
        if below is not None and not entry.shadowed and entry.value.kind == below.value.kind == "mapping":
            entry = Entry(entry.key, _merge(entry.value, below.value))
        entries.append(entry)
    return Node("mapping", tuple(entries), child.span, child.style)


def written(tree: Node, home: Document) -> dict[str, Value]:
    """Every value below a tree by dotted name, sections included; list items by their index."""
    found: dict[str, Value] = {}
    stack = _below(tree, (), "")
    while stack:
        name, key, node, key_node = stack.pop()
        span, raw = node.span, node.value
        if node.kind != "scalar":
            raw = node.plain()
            stack += _below(node, key, name)
        editable = node.kind == "scalar" and span.start >= key_node.span.start and span.source is key_node.span.source
        setting = Setting(key, raw, span, key_node.span, editable=editable)
        found[name] = Value(raw, Origin.WRITTEN, setting, "", _editor(key, removable=span.source is home.source))
    return found


def _below(node: Node, key: Key, name: str) -> list[tuple[str, Key, Node, Node]]:
    """Name, key, node and the node of the key of everything right below a node, the last first; items of a list where some are mappings."""
    start = f"{name}." if name else ""
    if node.kind == "mapping":
        parts = [(e.key.value if isinstance(e.key.value, (str, int)) else str(e.key.value), e) for e in reversed(node.entries) if not e.shadowed]
        return [(f"{start}{part}", (*key, part), e.value, e.key) for part, e in parts]
    if any(item.kind == "mapping" for item in node.items):
        return [(f"{start}{i}", (*key, i), node.items[i], node.items[i]) for i in range(len(node.items) - 1, -1, -1)]
    return []


class _editor:
    """Gives the edits that make a setting another value; picklable, and cheap to make."""

    __slots__ = ("key", "removable")

    def __init__(self, key: Key, *, removable: bool) -> None:
        self.key, self.removable = key, removable

    def __call__(self, value: object) -> tuple[Edit, ...]:
        if value is REMOVE:
            return (Edit("remove", self.key),) if self.removable else ()
        return (Edit("set", self.key, value),)
