"""A Hydra config with the configs of its defaults list, composed like `hydra.main` over nodes."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator

from preflight.loaders.composition.grammar import has_interpolation
from preflight.loaders.composition.merging import mapping, merge, put, without
from preflight.loaders.composition.overrides import Override
from preflight.loaders.composition.resolved_values import omegaconf_values
from preflight.loaders.document import Document, Node
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple

SELF = "_self_"
_GLOBAL = "_global_"


class Default(NamedTuple):
    """An entry. group: "" if it names a config directly. option: None if none is chosen, or several names. package: the
    text after @, None without it. place: the folder and the package of the config with the entry.
    """

    group: str
    option: str | tuple[str, ...] | None
    package: str | None = None
    optional: bool = False
    override: bool = False
    folder: str = ""
    parent: str = ""

    @property
    def is_self(self) -> bool:
        """Whether it is the place of the config itself in its defaults."""
        return not self.group and self.option == SELF

    @property
    def group_path(self) -> str:
        """The folder of the config."""
        inner = self.group if self.group else str(self.option).lstrip("/").rpartition("/")[0]
        if (self.group or str(self.option)).startswith("/"):
            return inner.lstrip("/")
        return "/".join(part for part in (self.folder, inner) if part)

    @property
    def config_path(self) -> str:
        """The path of the config in the searched folders, without .yaml."""
        if self.group:
            return f"{self.group_path}/{self.option}"
        path = str(self.option)
        return path[1:] if path.startswith("/") else "/".join(part for part in (self.folder, path) if part)

    def package_of(self, header: str | None) -> str:
        """The keys above its values. header: those in the header of its file."""
        own = self.package if self.package is not None else header
        if own is None:
            own = (self.group or str(self.option).lstrip("/").rpartition("/")[0]).lstrip("/").replace("/", ".")
        if "_group_" in own:
            own = f"{_GLOBAL}.{own.replace('_group_', self.group_path.replace('/', '.'))}"
        whole = ".".join(part for part in (self.parent, own) if part)
        at = whole.rfind(_GLOBAL)
        return whole if at < 0 else whole[at + len(_GLOBAL) + 1 :]

    @property
    def override_key(self) -> str:
        """The name of an override that changes its choice."""
        final = self.package_of(None)
        return (
            self.group_path if final == self.group_path.replace("/", ".") else f"{self.group_path}@{final or _GLOBAL}"
        )


def defaults_of(tree: Node) -> tuple[Default, ...] | None:
    """The entries of a config, None if it has no list; invalid entries are omitted."""
    listed = tree.get("defaults")
    if listed is None or listed.kind != "sequence":
        return None
    return tuple(entry for item in listed.items if (entry := _entry(item)) is not None)


def _entry(item: Node) -> Default | None:
    if item.kind == "scalar":
        path, _, package = str(item.value).partition("@")
        return Default("", path, _package(package) if "@" in str(item.value) else None)
    if item.kind != "mapping" or len(item.entries) != 1:
        return None
    words = str(item.entries[0].key.value).split()
    if not words:
        return None
    group, _, package = words[-1].partition("@")
    value = item.entries[0].value
    option = tuple(str(one.value) for one in value.items) if value.kind == "sequence" else _option(value)
    placed = _package(package) if "@" in words[-1] else None
    if group == "" or (words[-1] == "optional" and len(words) == 1):
        return None
    return Default(group, option, placed, "optional" in words[:-1], "override" in words[:-1])


def _package(text: str) -> str:
    return "" if text == "_here_" else text.rpartition(":")[2]


def _option(value: Node) -> str | None:
    return None if value.value is None or value.kind != "scalar" else str(value.value)


MAX_CONFIGS = 200
"""Maximum number of configs in a composition: verl's trainer has 30."""
MAX_LEVELS = 20
MAX_PARTS = 1000
"""Maximum number of merged configs, each counted as often as a list names it."""
Opened = Callable[[str], Document | None]
"""Opens a config by its path in the searched folders ("model/7b"), None if it is not found."""
_HEADER = lazy_pattern(r"\A(?:[^\S\n]*(?:#[^\n]*)?\n)*?[^\S\n]*#[^\S\n]*@package:?[ \t]+(\S+)")
"""Matches a line among the initial comments and empty lines, unambiguously."""
_CHOICE = lazy_pattern(r"\$\{([^${}:]+)\}")


class Hydra(NamedTuple):
    """A composed config: its documents, the primary first; unread configs; overrides that chose none."""

    tree: Node
    documents: tuple[Document, ...]
    missing: tuple[str, ...]
    overrides: tuple[Override, ...]


class _Part(NamedTuple):
    """A config of the list, in order; package: the keys above its values."""

    document: Document
    package: str


def composed(name: str, opened: Opened, overrides: Iterable[Override] = ()) -> Hydra | None:
    """A config by its name, with overrides that choose configs; None if it is not found."""
    composer = _Composer(opened, tuple(overrides))
    primary = composer.open(name)
    if primary is None or primary.tree is None:
        return None
    parts = tuple(composer.parts(Default("", name), primary, 0))
    tree = mapping((), primary.tree.span)
    for part in parts:
        tree = merge(tree, _placed(part))
    others = {id(part.document): part.document for part in parts if part.document is not primary}
    return Hydra(tree, (primary, *others.values()), tuple(composer.missing), tuple(composer.left()))


def _placed(part: _Part) -> Node:
    """The values of a config below the keys of its package."""
    assert part.document.tree is not None
    own = without(omegaconf_values(part.document.tree), "defaults")
    if not part.package:
        return own
    key = Node("scalar", part.package, own.span)
    return put(mapping((), own.span), tuple(part.package.split(".")), key, own)


class _Composer:
    def __init__(self, opened: Opened, overrides: tuple[Override, ...]) -> None:
        self._open, self._overrides = opened, overrides
        self._opened: dict[str, Document | None] = {}
        self._chosen = {o.key: o for o in overrides if _chooses(o)}
        self._deleted = {o.key: o for o in overrides if o.action == "delete" and o.node is None}
        self._used: set[int] = set()
        self._inner: dict[str, str | tuple[str, ...] | None] = {}
        self._choices: dict[str, str] = {}
        self._parts = 0
        self.missing: list[str] = []

    def open(self, path: str) -> Document | None:
        """A config; each is opened only once."""
        path = posixpath.normpath(path)
        if path not in self._opened:
            allowed = len(self._opened) < MAX_CONFIGS and not path.startswith(("../", "/"))
            found = self._open(path) if allowed else None
            usable = found is not None and found.tree is not None and found.tree.kind == "mapping"
            self._opened[path] = found if usable else None
        return self._opened[path]

    def left(self) -> Iterator[Override]:
        """Overrides that set values."""
        return (override for override in self._overrides if id(override) not in self._used)

    def parts(self, default: Default, document: Document, level: int) -> Iterator[_Part]:
        """A config and those in its list, in merging order."""
        assert document.tree is not None
        header = _HEADER.match(document.source.text[:4000])
        said = None if header is None else "_global_" if header[1] == "_global_" else f"_global_.{header[1]}"
        package = default.package_of(said)
        listed = defaults_of(document.tree)
        if not listed and not (level == 0 and self._appended):
            yield _Part(document, package)
            return
        folder = default.group_path
        entries = [entry._replace(folder=folder, parent=package) for entry in listed or ()]
        if not any(entry.is_self for entry in entries):
            entries.append(Default("", SELF))
        if level == 0:
            entries += [entry._replace(folder=folder, parent=package) for entry in self._appended]
        for entry in entries:
            if entry.override:
                self._inner.setdefault(entry.override_key, entry.option)
        made = {index: self._child(entry, level) for index, entry in self._ordered(entries)}
        for index in sorted(made):
            entry = entries[index]
            yield from (_Part(document, package),) if entry.is_self else made[index]

    @property
    def _appended(self) -> tuple[Default, ...]:
        """Groups added by +group=option, if such a config exists."""
        found = []
        for override in self._overrides:
            value = override.node.value if override.node is not None and override.node.kind == "scalar" else None
            group, at, package = override.key.partition("@")
            named = override.action == "add" and isinstance(value, str) and "." not in group
            if named and self.open(f"{group}/{value}") is not None:
                self._used.add(id(override))
                found.append(Default(group, str(value), package if at else None))
        return tuple(found)

    def _ordered(self, entries: list[Default]) -> Iterator[tuple[int, Default]]:
        """Entries chosen by an interpolation come last, because they refer to the choice of another entry."""
        kept = [(index, entry) for index, entry in enumerate(entries) if not entry.override]
        later = [pair for pair in kept if has_interpolation(self._option(pair[1]))]
        yield from (pair for pair in kept if not has_interpolation(self._option(pair[1])))
        yield from later

    def _option(self, entry: Default) -> str | tuple[str, ...] | None:
        """The choice for an entry: on the command line, in a config above, or in its own list."""
        if not entry.group:
            return entry.option
        key = entry.override_key
        if (override := self._chosen.get(key)) is not None:
            self._used.add(id(override))
            assert override.node is not None
            items = override.node.items
            return tuple(str(item.value) for item in items) if items else str(override.node.value)
        return self._inner.get(key, entry.option)

    def _child(self, entry: Default, level: int) -> tuple[_Part, ...]:
        if entry.is_self:
            return ()
        option = self._option(entry)
        if isinstance(option, tuple):
            each = (Default("", f"{entry.group}/{one}", entry.package, entry.optional) for one in option)
            placed = (one._replace(folder=entry.folder, parent=entry.parent) for one in each)
            return tuple(part for one in placed for part in self._config(one, level))
        if has_interpolation(option):
            option = _CHOICE.sub(lambda match: self._choices.get(match[1], match[0]), str(option))
        if entry.group and option is not None:
            self._choices.setdefault(entry.override_key, option)
        return self._config(entry._replace(option=option), level)

    def _config(self, entry: Default, level: int) -> tuple[_Part, ...]:
        if entry.group and (deleted := self._deleted.get(entry.override_key)) is not None:
            self._used.add(id(deleted))
            return ()
        if entry.option is None:
            return ()
        self._parts += 1
        found = self.open(entry.config_path) if level < MAX_LEVELS and self._parts < MAX_PARTS else None
        if found is None:
            if not entry.optional:
                self.missing.append(entry.config_path)
            return ()
        return tuple(self.parts(entry, found, level + 1))


def _chooses(override: Override) -> bool:
    """Whether an override may choose a config: its key has no dot, and its value is a name or a list of names."""
    node = override.node
    if override.action != "set" or node is None or node.kind == "mapping":
        return False
    return node.kind == "sequence" or isinstance(node.value, str)
