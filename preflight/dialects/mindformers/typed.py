"""Every value of a config by its dotted name, sections included; each is made when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from preflight.loaders.document import Document, Node, Setting
from preflight.run.arguments import REMOVE
from preflight.run.value import Origin, Value
from preflight.source.finding import Edit, Key
from preflight.source.text import Source

Place = tuple[Key, "str | int", Node, Node]
"""The key of the section, the name in it, the value's node, the node of the key."""


class Typed(Mapping[str, Value]):
    """What somebody typed, in reading order."""

    def __init__(self, places: Mapping[str, Place], home: Source, made: Mapping[str, Value]) -> None:
        self._places, self._home, self._made = places, home, dict(made)
        self._names = dict.fromkeys((*places, *made))

    def with_values(self, values: Mapping[str, Value]) -> Typed:
        """The same with other values over it."""
        return Typed(self._places, self._home, {**self._made, **values}) if values else self

    def __getitem__(self, name: str) -> Value:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found  # type: ignore[no-any-return]

    def get(self, name: str, otherwise: Any = None) -> Any:
        """The value of a name, or another one."""
        found = self._made.get(name)
        if found is None:
            place = self._places.get(name)
            if place is None:
                return otherwise
            found = self._made[name] = self._value(*place)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _value(self, section: Key, part: str | int, node: Node, key_node: Node) -> Value:
        key, span, scalar = (*section, part), node.span, node.kind == "scalar"
        raw = node.value if scalar else node.plain()
        editable = scalar and span.start >= key_node.span.start and span.source is key_node.span.source
        setting = Setting(key, raw, span, key_node.span, editable=editable)
        return Value(raw, Origin.WRITTEN, setting, "", _editor(key, removable=span.source is self._home))


def any_starts(names: Iterable[str], start: str) -> bool:
    """Whether one of the names starts so."""
    return f"\n{start}" in "\n".join(("", *names))


def written(tree: Node, home: Document) -> Typed:
    """Every value below a tree by dotted name; list items by their index where some of the list are mappings."""
    places: dict[str, Place] = {}
    _find(places, tree, (), "")
    return Typed(places, home.source, {})


def _find(places: dict[str, Place], node: Node, key: Key, start: str) -> None:
    """Put down everything below a node; how deep they nest is bounded by the loader."""
    if node.kind == "mapping":
        parts = [
            (e.key.value if isinstance(e.key.value, (str, int)) else str(e.key.value), e.value, e.key)
            for e in node.entries
            if not e.shadowed
        ]
    elif any(item.kind == "mapping" for item in node.items):
        parts = [(number, item, item) for number, item in enumerate(node.items)]
    else:
        return
    for part, value, key_node in parts:
        name = f"{start}{part}"
        places[name] = (key, part, value, key_node)
        if value.kind != "scalar":
            _find(places, value, (*key, part), f"{name}.")


class _editor:
    """Gives the edits that make a setting another value."""

    __slots__ = ("key", "removable")

    def __init__(self, key: Key, *, removable: bool) -> None:
        self.key, self.removable = key, removable

    def __call__(self, value: object) -> tuple[Edit, ...]:
        if value is REMOVE:
            return (Edit("remove", self.key),) if self.removable else ()
        return (Edit("set", self.key, value),)
