"""Rank tables (hccl.json, named by RANK_TABLE_FILE): which devices of which servers take part."""

from __future__ import annotations

from preflight.dialects import Surroundings
from preflight.loaders.document import Document, Node, Setting
from preflight.run.value import Origin, Value
from preflight.source.text import InputError

VARIABLE = "RANK_TABLE_FILE"
SOURCE = "the rank table"


def rank_table(document: Document, surroundings: Surroundings) -> Document | None:
    """The rank table that a launch names; None when it names none, or when it is missing or cannot be read."""
    word = document.launch.environment.get(VARIABLE) if document.launch is not None else None
    if word is None or word.text is None:
        return None
    try:
        found = surroundings.read(document, word.text)
    except InputError:
        return None
    return found if found is not None and found.tree is not None and found.tree.get("server_list") is not None else None


def listed_devices(ranks: Document, document: Document) -> Value:
    """How many devices a rank table lists, pointing at where the launch names it."""
    assert ranks.tree is not None and document.launch is not None
    span = document.launch.environment[VARIABLE].span
    total = sum(len(server_devices(server)) for server in servers(ranks.tree))
    return Value(total, Origin.WRITTEN, Setting((), total, span, span, editable=False), SOURCE)


def servers(tree: Node) -> tuple[Node, ...]:
    """The servers of a table, in order."""
    listed = tree.get("server_list")
    return listed.items if listed is not None else ()


def server_devices(server: Node) -> tuple[Node, ...]:
    """The devices of a server."""
    listed = server.get("device")
    return listed.items if listed is not None else ()
