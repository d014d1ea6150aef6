"""Keys that Megatron-Bridge does not know, in the sections that are always of the same class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from preflight.dialects.doors.door import Door, data
from preflight.dialects.doors.dotted import Dotted
from preflight.dialects.doors.unread import unread
from preflight.loaders.document import Document, Problem

TARGET = "_target_"


def unread_keys(door: Door, dotted: Dotted) -> Iterator[Problem]:
    """A file's are skipped with a warning, a launch with one is refused, a recipe that sets one changes nothing."""
    sections: Mapping[str, Sequence[str]] = data(door.name)["sections"]
    for document in dotted.documents:
        if document.tree is not None:
            yield from _in_tree(door._replace(unread="skipped"), document, sections)
    for override in dotted.overrides:
        path = override.path
        if override.action == "set" and len(path) == 2 and _strange(sections, *path):
            yield unread(door._replace(unread="refused"), override.key, override.key_span)


def _in_tree(door: Door, document: Document, sections: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    assert document.tree is not None
    program = document.kind == "python"
    for section in document.tree.entries:
        of = section.value
        if of.kind != "mapping" or section.shadowed or of.get(TARGET) is not None:
            continue
        for entry in of.entries:
            path = (str(section.key.value), str(entry.key.value))
            if not entry.shadowed and _strange(sections, *path):
                found = unread(door._replace(unread="dropped") if program else door, ".".join(path), entry.key.span)
                yield found._replace(fix=None) if program else found._replace(keys=path)


def _strange(sections: Mapping[str, Sequence[str]], section: str, name: str) -> bool:
    known = sections.get(section)
    return known is not None and name not in known
