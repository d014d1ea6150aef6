"""The namespace of one graph-mode run while its values are derived: explicit, stated by the caller, changed,
derived."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from preflight.dialects.mindformers.release_tables import Table, table
from preflight.loaders.document import Document, Node, Setting, Unknown
from preflight.run.arguments import REMOVE, Switch
from preflight.run.request import Given
from preflight.run.value import BY_CALLER, Origin, Value, default, derived, unknown
from preflight.source.finding import Edit, Key
from preflight.source.source_file import Source, Span
from preflight.source.typing_without_import import Any

Place = tuple[Key, "str | int", Node, Node]
"""The key of the section, the name in it, the value's node, the node of the key."""


class Typed(Mapping[str, Value]):
    """Explicit values, in reading order."""

    def __init__(self, places: Mapping[str, Place], home: Source, made: Mapping[str, Value]) -> None:
        self._places, self._home, self._made = places, home, dict(made)
        self._names = dict.fromkeys((*places, *made))

    def with_values(self, values: Mapping[str, Value]) -> Typed:
        """The values, overridden by other ones."""
        return Typed(self._places, self._home, {**self._made, **values}) if values else self

    def __getitem__(self, name: str) -> Value:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found  # type: ignore[no-any-return]

    def get(self, name: str, otherwise: Any = None) -> Any:
        """The value of a name, or a fallback."""
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
    """Whether one of the names has this beginning."""
    return f"\n{start}" in "\n".join(("", *names))


def written(tree: Node, home: Document) -> Typed:
    """Every value below a tree by dotted name; list items by index if the list contains mappings."""
    places: dict[str, Place] = {}
    _find(places, tree, (), "")
    return Typed(places, home.source, {})


def _find(places: dict[str, Place], node: Node, key: Key, start: str) -> None:
    """Store everything below a node; the loader limits the nesting depth."""
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
    """Creates the edits that set a setting to another value."""

    __slots__ = ("key", "removable")

    def __init__(self, key: Key, *, removable: bool) -> None:
        self.key, self.removable = key, removable

    def __call__(self, value: object) -> tuple[Edit, ...]:
        if value is REMOVE:
            return (Edit("remove", self.key),) if self.removable else ()
        return (Edit("set", self.key, value),)


SECTION = "model.model_config"


def told(given: Given, written: Iterable[str], known: Iterable[str], start: Span) -> dict[str, Value]:
    """Values by dotted name. A name without a dot means the only setting in the file with this ending, otherwise a
    setting of the model; anything else is a variable of a script. written: names of settings in the file; known: names
    of model settings; start: the place of a setting that is not in the file."""
    names, parts = tuple(written), frozenset(known)
    found: dict[str, Value] = {}
    for name, text in given.items():
        full, raw = _full(name, names, parts), _value(text)
        if not full:
            continue
        given.mark((name,))
        setting = Setting(tuple(full.split(".")), raw, start, start, editable=False)
        found[full] = Value(raw, Origin.STATED, setting, BY_CALLER)
    return found


def _full(name: str, names: tuple[str, ...], known: frozenset[str]) -> str:
    if "." in name or name in names:
        return name
    ends = [one for one in names if one.endswith(f".{name}")]
    return ends[0] if len(ends) == 1 else f"{SECTION}.{name}" if name in known else ""


def _value(text: str) -> object:
    """A scalar or a list in the notation common to JSON and YAML; any other text is a string."""
    try:
        return json.loads(text.lower() if text in ("True", "False") else text)
    except (ValueError, RecursionError):
        return text


TRAINING = ("train", "finetune", "predict_with_train_model")


@lru_cache(maxsize=4096)
def _default(version: str, name: str, model: str) -> Value:
    return default(table(version).default(name, model), f"MindFormers {version}")


class Run:
    """Values by dotted name. kind: legacy or mcore."""

    def __init__(self, table: Table, written: Mapping[str, Value], kind: str) -> None:
        self.table, self.written, self.kind = table, written, kind
        self.effective: dict[str, Value] = {}
        self.switches: list[Switch] = []
        type_name = written.get("model.model_config.type")
        self.model = type_name.raw if type_name is not None and isinstance(type_name.raw, str) else ""
        self.absent = ""  # why unread settings of the model may exist
        self.open = ""  # why any unread setting may exist

    def value(self, name: str) -> Value:
        """The present value."""
        found = self.effective.get(name) or self.written.get(name)
        return found if found is not None else self.default(name)

    def default(self, name: str) -> Value:
        """The default; None if the release has no such key. The values of an unreadable config.json are unknown."""
        if self.open:
            return unknown(self.open)
        if self.absent and name.startswith(("mcore.", "model.model_config.")):
            return unknown(self.absent)
        return _default(self.table.version, name, self.model)

    def raw(self, name: str) -> Any:
        """The plain value, or an Unknown."""
        return self.value(name).raw

    def number(self, name: str) -> int | None:
        """The value if it is an integer, else None."""
        raw = self.raw(name)
        return raw if isinstance(raw, int) and not isinstance(raw, bool) else None

    def true(self, name: str) -> bool | None:
        """Whether the framework treats the value as true; None if it is unknown."""
        raw = self.raw(name)
        return None if isinstance(raw, Unknown) else bool(raw)

    def derive(self, name: str, raw: object, note: str = "", of: str = "") -> None:
        """Set a derived value; its place is that of the name `of`."""
        base = self.written.get(of or name)
        if isinstance(raw, Unknown):
            self.effective[name] = unknown(raw.because)
        elif base is not None and not of:
            self.effective[name] = base.derived(raw, note)
        else:
            self.effective[name] = (
                Value(raw, Origin.DERIVED, base.setting if base else None, note) if base else derived(raw, note)
            )

    def lose(self, name: str, because: str) -> None:
        """Mark a value as unknown; an explicit one keeps its place."""
        base = self.written.get(name)
        lost = Unknown(because)
        self.effective[name] = (
            base._replace(raw=lost, origin=Origin.UNKNOWN, note=because) if base is not None else unknown(because)
        )

    def switch(self, name: str, after: object, cause: str, upstream: str) -> None:
        """The framework changes a setting silently."""
        before = self.value(name)
        if before.known and before.raw == after:
            return
        if before.written:
            self.switches.append(Switch(name, before.raw, after, cause, upstream))
        self.derive(name, after, cause)
