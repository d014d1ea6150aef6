"""A config as the framework loads it: nesting bounded, base_config merged."""

from __future__ import annotations

from preflight.dialects import Surroundings
from preflight.loaders.document import Document, Entry, Node
from preflight.source.record import NamedTuple

MAX_NESTING = 10
MAX_BASES = 20


class Loaded(NamedTuple):
    """The merged tree, every document it came from (the first is the config itself), and names of bases not read."""

    tree: Node
    documents: tuple[Document, ...]
    missing: tuple[str, ...] = ()


def load(document: Document, surroundings: Surroundings) -> Loaded:
    """The tree of a document with its base configs below it."""
    bases = _Bases(surroundings)
    tree = bases.below(document, (document.source.name,))
    return Loaded(tree, (document, *bases.found), tuple(bases.missing))


class _Bases:
    """The base configs of a config, and of these."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.found: list[Document] = []
        self.missing: list[str] = []

    def below(self, current: Document, above: tuple[str, ...]) -> Node:
        """The tree of a document merged over its bases. above: the names of the documents that led to it."""
        tree = current.tree
        assert tree is not None
        bases = tree.get("base_config")
        if bases is None:
            return tree
        base = Node("mapping", (), tree.span)
        for name in bases.items or (bases,):
            known = isinstance(name.value, str) and len(above) < MAX_BASES
            found = self.surroundings.read(current, str(name.value)) if known else None
            if found is None or found.tree is None or found.source.name in above:
                self.missing.append(str(name.value))
                continue
            self.found.append(found)
            base = _update(base, self.below(found, (*above, found.source.name)))
        own = tuple(entry for entry in tree.entries if entry.key.value != "base_config")
        return _merge(Node("mapping", own, tree.span, tree.style), base)


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
