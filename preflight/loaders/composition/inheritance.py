"""Configs that name their parents in `defaults` by paths, as in NeMo RL: depth first, later ones win, and a section
with `_override_: true` replaces the parent's."""

from __future__ import annotations

from collections.abc import Callable

from preflight.loaders.composition.merging import mapping, merge, without
from preflight.loaders.composition.resolved_values import omegaconf_values
from preflight.loaders.document import Document, Entry, Node
from preflight.source.record import NamedTuple

MAX_PARENTS = 30
"""Maximum number of files of a config: published ones have four."""
MAX_LEVELS = 10
Open = Callable[[Document, str], Document | None]
"""Opens a file that a document names, None if it is missing or must not be opened."""


class Inherited(NamedTuple):
    """A config merged over its parents: its documents, its own first, and the names of unread parents."""

    tree: Node
    documents: tuple[Document, ...]
    missing: tuple[str, ...] = ()


def inherited(document: Document, opened: Open) -> Inherited:
    """A config over its parents. Missing, circular or excess parents are listed, and not merged."""
    family = _Family(opened)
    tree = family.over_parents(document, (document.source.name,))
    return Inherited(tree, (document, *family.found), tuple(family.missing))


class _Family:
    def __init__(self, opened: Open) -> None:
        self.opened = opened
        self.found: list[Document] = []
        self.missing: list[str] = []

    def over_parents(self, document: Document, above: tuple[str, ...]) -> Node:
        """above: the names of the documents that include it."""
        assert document.tree is not None
        own = omegaconf_values(document.tree)
        names = own.get("defaults")
        if names is None:
            return own
        base = mapping((), own.span)
        for name in names.items or (names,):
            if (parent := self._parent(document, name.value, above)) is not None:
                base = _over(base, self.over_parents(parent, (*above, parent.source.name)))
        return _over(base, without(own, "defaults"))

    def _parent(self, document: Document, name: object, above: tuple[str, ...]) -> Document | None:
        allowed = isinstance(name, str) and len(above) < MAX_LEVELS and len(self.found) < MAX_PARENTS
        found = self.opened(document, str(name)) if allowed else None
        if found is None or found.tree is None or found.tree.kind != "mapping" or found.source.name in above:
            self.missing.append(str(name))
            return None
        self.found.append(found)
        return found


def _over(base: Node, own: Node) -> Node:
    """A config over its parents: marked sections replace theirs."""
    replaced = [entry.key.value for entry in own.entries if _replaces(entry)]
    for name in replaced:
        base = without(base, str(name))
    marked = tuple(e._replace(value=without(e.value, "_override_")) if _replaces(e) else e for e in own.entries)
    return merge(base, own._replace(value=marked) if replaced else own)


def _replaces(entry: Entry) -> bool:
    marker = entry.value.get("_override_") if entry.value.kind == "mapping" else None
    return marker is not None and bool(marker.value)
