"""Doors of which one section over another becomes the options of a command: `key: true` is a bare option, `false` and
`null` are none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from preflight.dialects.doors.door import Door
from preflight.dialects.doors.dotted import Dotted, DottedWriter
from preflight.dialects.doors.unread import of_door
from preflight.dialects.megatron.option_table import Flag, Table
from preflight.dialects.megatron.parsing import Parsed, parse
from preflight.loaders.composition.values import Composed, Found
from preflight.loaders.document import Document, Setting, Unknown, Word
from preflight.run.arguments import REMOVE
from preflight.run.value import Origin, Value
from preflight.source.finding import Edit, Key

MODEL = "model"
"""The key that names a model of the config's `model`: its keys come first."""


def option(key: str) -> str:
    """The option that a key becomes."""
    return f"--{key.replace('_', '-')}"


def layered(config: Composed, sections: Sequence[str]) -> dict[str, Found]:
    """The keys of a model and of sections over it: the last that has a key says it."""
    found: dict[str, Found] = {}
    named = [config.at(section, MODEL).value for section in sections if config.at(section, MODEL).node is not None]
    for path in (*([(MODEL, str(named[-1]))] if named else []), *((section,) for section in sections)):
        node = config.at(*path).node
        for entry in node.entries if node is not None else ():
            if entry.key.value != MODEL:
                found[str(entry.key.value).replace("-", "_")] = config.at(*path, str(entry.key.value))
    return found


class SectionWriter(DottedWriter):
    """Writes keys where they stand, and new ones in the section that wins."""

    def __init__(self, door: Door, dotted: Dotted, sections: Sequence[str]) -> None:
        super().__init__(door, dotted)
        self.door, self.table = door, door.keys.core
        self.section = next((one for one in reversed(sections) if dotted.config.at(one).node is not None), sections[0])
        self.found = layered(dotted.config, sections)

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edits that give an argument a value; none where no key says it."""
        flags = {key: flag for flag in self.table.flags(name) if (key := _key(flag)) in self.door.keys.options}
        if not flags:
            return super().put(name, value)
        key = next((one for one in reversed(flags) if one in self.found), next(iter(flags)))
        flag = flags[key]
        on = value is None or bool(value)
        raw = None if value is REMOVE else value
        if flag.switch:
            raw = value is not REMOVE and on == flag.stores(flag.option)
        place = self.found.get(key)
        if place is None:
            return self._added(f"{self.section}.{key}", raw)
        path, document = where(place, self.dotted.documents)
        if document is None or place.node is None:
            return self.at(place.path, raw)
        return (Edit("set", path, raw, place.node.span),)

    def _added(self, key: str, value: object) -> tuple[Edit, ...]:
        main = next((one for one in self.dotted.documents if one.tree is not None), self.dotted.documents[0])
        return (Edit("set", tuple(key.split(".")), value, main.start),)


def _key(flag: Flag) -> str:
    return flag.option.removeprefix("--").replace("-", "_")


def where(found: Found, documents: Sequence[Document]) -> tuple[Key, Document | None]:
    """The path of a value in the file where it stands: a config that is chosen by name lacks the first keys there."""
    node = found.node
    document = next((one for one in documents if node is not None and one.source is node.span.source), None)
    for start in range(len(found.path)):
        here = document.tree.get(*found.path[start:]) if document is not None and document.tree is not None else None
        if node is not None and here is not None and here.span == node.span:
            return found.path[start:], document
    return found.path, None


def read_sections(writer: SectionWriter, parsed: Parsed, instead: Mapping[str, str]) -> None:
    """The options that the sections make, parsed as the program that they go to does it. instead: values that the door
    hands on as others."""
    door = writer.door
    known = {key: one for key, one in writer.found.items() if key in door.keys.options or key in door.known}
    places = {option(key): one for key, one in known.items() if option(key) in writer.table.options}
    paths = {name: where(one, writer.dotted.documents)[0] for name, one in places.items()}
    words = tuple(word for name, one in places.items() for word in _words(name, one, instead))
    own = Parsed()
    parse(words, writer.table, lambda name: paths[name], 0, own, writer.put)
    parsed.faults += of_door(door, own.faults, stated=True)  # no choices of other releases are listed
    parsed.suspect |= own.suspect
    parsed.written |= own.written
    parsed.written |= dict(_off(places, paths, writer))


def _words(name: str, one: Found, instead: Mapping[str, str]) -> Iterator[Word]:
    """The words of a key."""
    node, value = one.node, one.value
    if node is None or one.key is None or (node.kind == "scalar" and (value is None or value is False)):
        return
    yield Word(name, one.key.span)
    if isinstance(value, Unknown):
        yield Word(None, node.span, because=value.because, editable=False)
    elif node.kind == "sequence":
        yield from (Word(str(item.plain()), item.span, editable=False) for item in node.items)
    elif value is not True:
        text = instead.get(str(value), str(value))
        yield Word(text, node.span, one.uses, editable=one.exact and node.style == "" and text == str(value))


def _off(places: Mapping[str, Found], paths: Mapping[str, Key], writer: SectionWriter) -> Iterator[tuple[str, Value]]:
    """Switches that somebody typed as off."""
    table: Table = writer.table
    for name, one in places.items():
        flag = table.options[name]
        if one.value is False and flag.switch and one.node is not None and one.key is not None:
            raw = not flag.stores(name)
            setting = Setting(paths[name], raw, one.node.span, one.key.span, one.uses, editable=False)
            yield flag.dest, Value(raw, Origin.WRITTEN, setting, edits=partial(writer.put, flag.dest))
