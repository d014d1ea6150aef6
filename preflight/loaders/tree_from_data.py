"""Data of a table as the tree of a file, for defaults that are merged with the values of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping

from preflight.loaders.document import Entry, Node
from preflight.source.source_file import Source, Span
from preflight.source.typing_without_import import Any, Literal

BETWEEN = len(", ")
"""Characters between two items, and between a key and its value."""


def json_tree(data: Mapping[str, Any], name: str) -> Node:
    """The tree of a file of that name that contains the data as JSON: the same as `load_yaml` returns for its text,
    with numbers as OmegaConf reads them, without loading PyYAML."""
    return _Placed(Source(json.dumps(data), name)).node(data)


_encode = json.JSONEncoder().encode


def _length(value: object) -> int:
    """The number of characters of a scalar in JSON; the usual kinds without the work of `json.dumps`."""
    if isinstance(value, str):
        return len(_encode(value))
    if value is None or value is True:
        return len("null")
    return len(repr(value)) if type(value) is int else len(json.dumps(value))


class _Placed:
    """Nodes in the order of the text. at: the place of the next one."""

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0

    def node(self, value: Any) -> Node:
        if not isinstance(value, (dict, list)):
            return self._scalar(value)
        start = self._at
        self._at += 1
        if isinstance(value, dict):
            entries = tuple(self._entry(number, *item) for number, item in enumerate(value.items()))
            return self._closed("mapping", entries, start)
        return self._closed("sequence", tuple(self._item(number, one) for number, one in enumerate(value)), start)

    def _closed(self, kind: Literal["sequence", "mapping"], parts: object, start: int) -> Node:
        self._at += 1
        return Node(kind, parts, Span(self._source, start, self._at), "flow")

    def _item(self, number: int, value: Any) -> Node:
        self._at += BETWEEN if number else 0
        return self.node(value)

    def _entry(self, number: int, key: str, value: Any) -> Entry:
        self._at += BETWEEN if number else 0
        name = self._scalar(key)
        self._at += BETWEEN
        return Entry(name, self.node(value))

    def _scalar(self, value: Any) -> Node:
        start = self._at
        self._at += _length(value)
        return Node("scalar", value, Span(self._source, start, self._at), '"' if isinstance(value, str) else "")
