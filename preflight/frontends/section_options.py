"""Front ends whose YAML sections become the options of a command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from preflight.dialects.megatron.options import Flag, Table, releases_with
from preflight.dialects.megatron.parse_faults import UNKNOWN_FLAG
from preflight.dialects.megatron.parsing import Parsed, parse
from preflight.frontends.dotted_config import Dotted, DottedWriter
from preflight.frontends.front_end import FrontEnd, of_front_end, unread
from preflight.frontends.megatron_run import Typed
from preflight.loaders.composition.resolved_values import Composed, Found
from preflight.loaders.document import Document, Entry, Node, Problem, Setting, Unknown, Word
from preflight.run.arguments import REMOVE
from preflight.run.value import Origin, Value
from preflight.source.finding import Edit, Key
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple, replace

MODEL = "model"
"""The key that names a model in the config's `model`: its keys come first."""


def option(key: str) -> str:
    """The option for a key."""
    return f"--{key.replace('_', '-')}"


def layered(config: Composed, sections: Sequence[str]) -> dict[str, Found]:
    """The keys of a model merged with those of sections: the last occurrence of a key sets it."""
    found: dict[str, Found] = {}
    named = [config.at(section, MODEL).value for section in sections if config.at(section, MODEL).node is not None]
    for path in (*([(MODEL, str(named[-1]))] if named else []), *((section,) for section in sections)):
        node = config.at(*path).node
        for entry in node.entries if node is not None else ():
            if entry.key.value != MODEL:
                found[str(entry.key.value).replace("-", "_")] = config.at(*path, str(entry.key.value))
    return found


class SectionWriter(DottedWriter):
    """Writes existing keys in place, and new ones in the section that takes precedence."""

    def __init__(self, front_end: FrontEnd, dotted: Dotted, sections: Sequence[str]) -> None:
        super().__init__(front_end, dotted)
        self.front_end, self.table = front_end, front_end.keys.core
        self.section = next((one for one in reversed(sections) if dotted.config.at(one).node is not None), sections[0])
        self.found = layered(dotted.config, sections)

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edits that set an argument; none if no key sets it."""
        flags = {
            key: flag for flag in self.table.flags(name) if (key := _key_of_flag(flag)) in self.front_end.keys.options
        }
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
        if value is REMOVE and not flag.switch:  # null would be passed to the program instead of the default
            return (Edit("remove", path, span=place.node.span),)
        return (Edit("set", path, raw, place.node.span),)

    def _added(self, key: str, value: object) -> tuple[Edit, ...]:
        main = next((one for one in self.dotted.documents if one.tree is not None), self.dotted.documents[0])
        return (Edit("set", tuple(key.split(".")), value, main.start),)


def _key_of_flag(flag: Flag) -> str:
    return flag.option.removeprefix("--").replace("-", "_")


def where(found: Found, documents: Sequence[Document]) -> tuple[Key, Document | None]:
    """The path of a value in its file: a config that is chosen by name lacks the first keys there."""
    node = found.node
    document = next((one for one in documents if node is not None and one.source is node.span.source), None)
    for start in range(len(found.path)):
        here = document.tree.get(*found.path[start:]) if document is not None and document.tree is not None else None
        if node is not None and here is not None and here.span == node.span:
            return found.path[start:], document
    return found.path, None


def read_sections(writer: SectionWriter, parsed: Parsed, instead: Mapping[str, str]) -> None:
    """The options from the sections, parsed as the receiving program does. instead: values that the front end
    replaces."""
    front_end = writer.front_end
    known = {key: one for key, one in writer.found.items() if key in front_end.keys.options or key in front_end.known}
    places = {option(key): one for key, one in known.items() if option(key) in writer.table.options}
    paths = {name: where(one, writer.dotted.documents)[0] for name, one in places.items()}
    words = tuple(word for name, one in places.items() for word in _words(name, one, instead))
    own = Parsed()
    parse(words, writer.table, lambda name: paths[name], 0, own, writer.put)
    parsed.faults += of_front_end(front_end, own.faults, stated=True)  # choices of other releases are not listed
    parsed.suspect |= own.suspect
    parsed.written |= own.written
    parsed.written |= dict(_off(places, paths, writer))


def _words(name: str, one: Found, instead: Mapping[str, str]) -> Iterator[Word]:
    """The words for a key."""
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
    """Switches set to off."""
    table: Table = writer.table
    for name, one in places.items():
        flag = table.options[name]
        if one.value is False and flag.switch and one.node is not None and one.key is not None:
            raw = not flag.stores(name)
            setting = Setting(paths[name], raw, one.node.span, one.key.span, one.uses, editable=False)
            yield flag.dest, Value(raw, Origin.WRITTEN, setting, edits=partial(writer.put, flag.dest))


Path = tuple[str, ...]


_TO_FILL_IN = lazy_pattern(r"[xX]{3,}(?: [xX]{3,})*|<[^<>]*>")


class Shape(NamedTuple):
    """The location of the options. left_out: keys that are not options if they have this value; REMOVE: any value.
    environment: the location of the job's variables, runner: keys there that are not variables.
    """

    sections: tuple[Path, ...]
    left_out: Mapping[str, object]
    environment: Path
    runner: tuple[str, ...] = ()


class _Leaf(NamedTuple):
    """A key that becomes an option, with its path in the file."""

    option: str
    path: Path
    key: Node
    found: Found


class FlatWriter(DottedWriter):
    """Writes options as keys: where the option already is, otherwise in the section for new ones."""

    def __init__(self, front_end: FrontEnd, dotted: Dotted, paths: Mapping[str, Path], shape: Shape) -> None:
        super().__init__(front_end, dotted)
        self.table, self.paths, self.shape = front_end.keys, paths, shape

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edits that set an argument."""
        if name in self.keys:
            return super().put(name, value)
        flags = self.table.flags(name)
        flag = next((one for one in reversed(flags) if one.option in self.paths), flags[0] if flags else None)
        if flag is None:
            return ()
        written: object = value
        if flag.switch and value is not REMOVE:
            written = value is None or flag.stores(flag.option) == value
        path = self.paths.get(flag.option)
        if path is not None:
            return self.at(path, written)
        if written is REMOVE or written is False:
            return ()
        return self._new(self.shape.sections[0], _key(flag.option), written)

    def at(self, path: Key, value: object) -> tuple[Edit, ...]:
        """The edits at an existing key in a file; none if its value is that of another key."""
        found = self.dotted.config.at(*path)
        if found.node is None or found.path != path:
            return ()
        inner = _inside(self.dotted, path, found.node)
        if not inner:
            return ()
        span = found.node.span
        return (Edit("remove", inner, span=span),) if value is REMOVE else (Edit("set", inner, value, span),)

    def export(self, name: str, value: object) -> tuple[Edit, ...]:
        """A variable of the job."""
        text = str(value)
        return self._new(
            self.shape.environment, name, int(text) if text.isdecimal() and str(int(text)) == text else text
        )

    def _new(self, section: Path, key: str, value: object) -> tuple[Edit, ...]:
        """The edit that sets a key of a section."""
        node = self.dotted.config.at(*section).node
        inner = _inside(self.dotted, section, node) if node is not None else ()
        return (Edit("set", (*inner, key), value, node.span),) if node is not None and inner else ()


def _inside(dotted: Dotted, path: Key, node: Node) -> Key:
    """The path of a node in its file, () if it is in none: the contents of a group's config are below the name of the
    group."""
    for document in dotted.documents:
        for inner in (path, path[1:]):
            there = document.tree.get(*inner) if document.tree is not None and inner else None
            if there is not None and there.span == node.span:
                return inner
    return ()


def _key(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def flatten(front_end: FrontEnd, typed: Typed, dotted: Dotted, shape: Shape, *, stated: bool, foreign: bool) -> Typed:
    """The sections as options, in order. stated: whether the release is named; foreign: whether the entry script has
    unknown options."""
    top = {key: leaf for section in shape.sections for key, leaf in _keys(dotted.config, section)}
    leaves = [leaf for key, found in top.items() for leaf in _leaves(dotted.config, found, shape)]
    paths = {leaf.option: leaf.path for leaf in leaves}
    parsed, writer = typed.parsed, FlatWriter(front_end, dotted, paths, shape)
    words = tuple(word for leaf in leaves for word in _words_of_leaf(dotted.config, leaf, front_end))
    parse(words, front_end.keys, lambda option: paths.get(option, (option,)), 0, parsed, writer.put)
    for leaf in leaves:
        flag = front_end.keys.options.get(leaf.option)
        if flag is not None and flag.switch and isinstance(leaf.found.value, Unknown):
            parsed.written[flag.dest] = Value(leaf.found.value, Origin.UNKNOWN, note=leaf.found.value.because)
    by_key = {(leaf.key.span.source, leaf.key.span.start): leaf for leaf in leaves}
    faults, parsed.faults = parsed.faults, []
    for fault in faults:
        at = by_key.get((fault.span.source, fault.span.start))
        if fault.kind != UNKNOWN_FLAG or at is None:
            parsed.faults.append(fault)
        elif not foreign:
            parsed.faults.append(_unread(front_end, dotted, at, stated))
    environment = {**typed.spelled.environment, **dict(_variables(dotted.config, shape))}
    return typed._replace(writer=writer, spelled=replace(typed.spelled, environment=environment, yaml=True))


def _unread(front_end: FrontEnd, dotted: Dotted, leaf: _Leaf, stated: bool) -> Problem:
    """A key that the parser refuses; an undescribed release may have it, unless it is a misspelling of another key."""
    folder, name = dotted.config.at(*leaf.path[:-1]).node, str(leaf.key.value)
    path = _inside(dotted, leaf.path[:-1], folder) if folder is not None else ()
    keys = (*(str(part) for part in path), name)
    elsewhere = bool(releases_with("megatron", leaf.option))
    found = unread(front_end, leaf.option, leaf.key.span, path=keys, shown=name, elsewhere=elsewhere)
    return found._replace(harmless=(elsewhere or found.fix is None) and not stated)


def _keys(config: Composed, section: Path) -> Iterator[tuple[str, _Leaf]]:
    """The keys of a section; a key in several sections keeps the position of the first and the value of the last."""
    for entry in _live(config.at(*section).node):
        path = (*section, str(entry.key.value))
        yield path[-1], _Leaf(_option(path[-1]), path, entry.key, config.at(*path))


def _leaves(config: Composed, leaf: _Leaf, shape: Shape) -> Iterator[_Leaf]:
    """The keys of a folder and those of its folders."""
    key, found = leaf.path[-1], leaf.found
    if key in shape.left_out and (shape.left_out[key] is REMOVE or found.value == shape.left_out[key]):
        return
    if found.node is not None and found.node.kind == "mapping":
        for entry in _live(found.node):
            path = (*leaf.path, str(entry.key.value))
            yield from _leaves(config, _Leaf(_option(path[-1]), path, entry.key, config.at(*path)), shape)
    elif found.value is not False:
        yield leaf


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _live(node: Node | None) -> list[Entry]:
    return [entry for entry in node.entries if not entry.shadowed] if node is not None else []


def _words_of_leaf(config: Composed, leaf: _Leaf, front_end: FrontEnd) -> Iterator[Word]:
    """An option with its values, as passed to the shell."""
    node, found, flag = leaf.found.node, leaf.found, front_end.keys.options.get(leaf.option)
    span = node.span if node is not None else leaf.key.span
    because = found.value.because if isinstance(found.value, Unknown) else ""
    if isinstance(found.value, str) and _TO_FILL_IN.fullmatch(found.value):
        because = "it must be filled in"
    if because:
        if flag is not None and not flag.switch:
            yield Word(leaf.option, leaf.key.span)
            yield Word(None, span, found.uses, because=because, editable=False)
        return
    yield Word(leaf.option, leaf.key.span)
    if node is not None and node.kind == "sequence":
        for at, item in enumerate(node.items):
            inner = config.at(*found.path, at)
            lost = isinstance(inner.value, Unknown)
            plain = inner.value if inner.node is None or inner.node.kind == "scalar" else inner.node.plain()
            yield Word(None if lost else str(plain), item.span, found.uses, "not known" if lost else "", editable=False)
    elif found.value is not True:
        exact = found.exact and node is not None and node.style == ""
        yield Word(str(found.value), span, found.uses, editable=exact)


def _variables(config: Composed, shape: Shape) -> Iterator[tuple[str, Value]]:
    """The variables of the job; those that differ by node or device are unknown."""
    for entry in _live(config.at(*shape.environment).node):
        name = str(entry.key.value)
        found = config.at(*shape.environment, name)
        if name in shape.runner:
            for inner in (one for node in _live(found.node) for one in _live(node.value)):
                yield str(inner.key.value), Value(Unknown("each node has a separate value"), Origin.UNKNOWN)
        elif isinstance(found.value, Unknown):
            yield name, Value(found.value, Origin.UNKNOWN)
        elif found.node is not None and found.node.kind == "scalar":
            yield name, Value(str(found.value), Origin.WRITTEN)
