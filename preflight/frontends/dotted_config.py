"""Front ends with dotted paths in a composed config as keys: files with their parents, and overrides."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from preflight.dialects import Surroundings
from preflight.dialects.megatron.options import Flag
from preflight.dialects.megatron.parser_input import Spelled, spell_environment
from preflight.dialects.megatron.parsing import Parsed
from preflight.frontends.front_end import FrontEnd, data
from preflight.frontends.megatron_run import Typed
from preflight.loaders.composition.hydra import Hydra, composed
from preflight.loaders.composition.overrides import Override, added, read_override, replaced, spelled
from preflight.loaders.composition.resolved_values import Composed, Found
from preflight.loaders.document import Document, Setting, Unknown, Word
from preflight.run.arguments import REMOVE
from preflight.run.value import Origin, Value
from preflight.source.checkout_root import checkout_root
from preflight.source.finding import Edit, Key
from preflight.source.record import NamedTuple
from preflight.source.source_file import Source

LEVELS = 6
"""The number of folders above a file in which a file named relative to the run's start is searched."""


def opener(document: Document, surroundings: Surroundings) -> Callable[[Document, str], Document | None]:
    """Opens parents of a config, by a path relative to the file that names it: in its checkout, or with --isolated in
    its folder or below."""
    around = surroundings.around
    path = document.source.path
    top = None
    if path is not None and around is not None:
        top = os.path.realpath(path.parent) if around.isolated else checkout_root(path)

    def opened(current: Document, name: str) -> Document | None:
        here = current.source.path
        if top is None or here is None or os.path.isabs(name) or "\0" in name:
            return None
        target = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(here)), name))
        return surroundings.read(current, name) if target.startswith(os.path.join(top, "")) else None

    return opened


def above(document: Document, name: str, opened: Callable[[Document, str], Document | None]) -> Document | None:
    """A YAML file named relative to the run's start: in the folder of the document, or one above it."""
    for level in range(LEVELS):
        found = opened(document, "../" * level + name)
        if found is not None and found.tree is not None and found.tree.kind == "mapping":
            return found
    return None


def after(document: Document, *names: str) -> str:
    """The value of an option of a launch, as --option value or --option=value; "" if unknown."""
    words = document.launch.words if document.launch is not None else ()
    for at, word in enumerate(words):
        option, equal, value = (word.text or "").partition("=")
        if option in names:
            return value if equal else (words[at + 1].text or "" if at + 1 < len(words) else "")
    return ""


CONFIGS, FOLDERS = "configs", ("--config-path", "--config-dir", "-cp", "-cd")
"""Options that name the folder of configs, or another config."""


def hydra(document: Document, surroundings: Surroundings) -> Hydra | None:
    """The config merged with its `defaults`: a file, or a config that a launch names in the folder of configs."""
    opened, words = opener(document, surroundings), document.launch.words if document.launch is not None else ()
    primary: Document | None = document
    if document.launch is not None:
        name = after(document, "--config-name", "-cn").removesuffix(".yaml")
        primary = above(document, f"{CONFIGS}/{name}.yaml", opened) if name and not _elsewhere(words) else None
    if primary is None:
        return None
    home = primary
    own = home.source.name.rpartition("/")[2].rpartition(".")[0] or "config"

    def config_at(path: str) -> Document | None:
        return home if path == own else opened(home, f"{path}.yaml")

    return composed(own, config_at, (one for word in words if (one := read_override(word)) is not None))


def _elsewhere(words: tuple[Word, ...]) -> bool:
    """Whether the folder of configs is a different one; the part before its name may be unknown."""
    for at, word in enumerate(words):
        head, tail = (word.pieces[0].text, word.pieces[-1].text) if word.pieces else (word.text, word.text)
        if (head or "").startswith(FOLDERS):
            after_it = words[at + 1] if "=" not in (head or "") and at + 1 < len(words) else None
            last = after_it.pieces[-1].text if after_it is not None and after_it.pieces else None
            text = tail if after_it is None else last or after_it.text
            return not (text or "").rstrip("/").endswith(CONFIGS)
    return False


class Dotted(NamedTuple):
    """A composed config. documents: its sources, the checked one first; own: the front end's defaults."""

    config: Composed
    documents: tuple[Document, ...]
    overrides: tuple[Override, ...] = ()
    own: Source | None = None

    @property
    def command(self) -> Document | None:
        """The launch with the overrides."""
        return self.documents[0] if self.documents[0].launch is not None else None


def typed(
    front_end: FrontEnd,
    dotted: Dotted,
    surroundings: Surroundings,
    own: DottedWriter | None = None,
    inside: Mapping[str, Mapping[str, str | None]] | None = None,
) -> Typed:
    """Its explicit values, by Megatron's names. own: creates the edits, if that is not this object. inside: sections
    with names of Megatron's fields, if they are not those of its table."""
    parsed, writer = Parsed(), own or DottedWriter(front_end, dotted)
    keys = (pair for pair in front_end.keys.options.items() if not pair[0].startswith("--"))
    for key, flag in (*keys, *_inside(front_end, dotted, inside)):
        found = dotted.config.at(*key.split("."))
        if found.node is not None and found.node.span.source is not dotted.own:
            writer.keys.setdefault(flag.dest, key)
            parsed.written[flag.dest] = _value(found, flag, dotted, writer)
        elif isinstance(found.value, Unknown):
            parsed.written[flag.dest] = Value(found.value, Origin.UNKNOWN, note=found.value.because)
    environment = spell_environment(surroundings.request.environment)
    spelling = Spelled((), lambda option: (option,), environment, _entry(dotted))
    return Typed(parsed, spelling, writer, dotted.documents)


def _entry(dotted: Dotted) -> str:
    command = dotted.command
    return (command.launch.entry.text or "") if command is not None and command.launch is not None else ""


def _inside(
    front_end: FrontEnd, dotted: Dotted, inside: Mapping[str, Mapping[str, str | None]] | None
) -> Iterator[tuple[str, Flag]]:
    """Keys that mirror fields of Megatron's own dataclasses: below a certain key each has the name it has in
    Megatron."""
    core = {flag.dest: flag for flag in front_end.keys.core.options.values()}
    sections = inside if inside is not None else data(front_end.name).get("inside", {})
    for prefix, renamed in sections.items():
        section = dotted.config.at(*prefix.split(".")).node
        for entry in section.entries if section is not None else ():
            name = str(entry.key.value)
            flag = core.get(renamed.get(name, name) or "")
            if flag is not None and not entry.shadowed and not flag.option.startswith("--no-"):
                kind = "bool" if flag.kind in ("true", "false") else flag.kind
                yield f"{prefix}.{name}", flag._replace(option=f"{prefix}.{name}", kind=kind)


def _value(found: Found, flag: Flag, dotted: Dotted, writer: DottedWriter) -> Value:
    """A value with its place."""
    assert found.node is not None
    raw = _converted(found, flag)
    key_span = found.key.span if found.key is not None else found.node.span
    override = dotted.command is not None and found.node.span.source is dotted.command.source
    key: Key = (".".join(map(str, found.path)),) if override else found.path
    uses = tuple(span for span in found.uses if span.source is not dotted.own)  # the file is never read
    last = next((one for one in reversed(dotted.overrides) if one.path == found.path), None)
    maybe = override and last is not None and last.word.maybe
    setting = Setting(key, raw, found.node.span, key_span, uses, found.exact, maybe, dotted.documents[0].run)
    if maybe:
        raw = Unknown(f"{key[-1]} is set on one branch of a condition only")
    if isinstance(raw, Unknown):
        return Value(raw, Origin.UNKNOWN, setting, raw.because)
    dest = flag.dest
    if uses and str(found.path[-1]) != flag.option.rpartition(".")[2]:
        return Value(raw, Origin.WRITTEN, setting, edits=lambda _: ())  # the key with the value has another meaning
    return Value(raw, Origin.WRITTEN, setting, edits=lambda new: writer.at(found.path, new) or writer.put(dest, new))


def _converted(found: Found, flag: Flag) -> object:
    """A value of the type of its key; unknown if its type differs."""
    assert found.node is not None
    raw = found.value if found.node.kind == "scalar" or isinstance(found.value, Unknown) else found.node.plain()
    if isinstance(raw, Unknown) or raw is None or flag.kind == "any":
        return raw
    kinds: Mapping[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "list": (list,)}
    texts = (str,) if flag.kind == "str" else (str, int, float)
    wanted = kinds.get(flag.kind, (str, int, float) if flag.nargs is None else texts)
    items = raw if isinstance(raw, list) and flag.nargs is not None else [raw]
    if not all(isinstance(one, wanted) and (flag.kind == "bool" or not isinstance(one, bool)) for one in items):
        return Unknown(f"{raw!s:.40} cannot be read as {flag.kind}")
    return str(raw) if flag.kind == "str" and flag.nargs is None else raw


class DottedWriter:
    """Creates the edits that write an argument: at its override, in the file that has it, or as another override."""

    def __init__(self, front_end: FrontEnd, dotted: Dotted) -> None:
        self.dotted = dotted
        self.keys = {flag.dest: option for option, flag in reversed(front_end.keys.options.items()) if "." in option}

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edits that set an argument; none if it has no key."""
        key = self.keys.get(name)
        if key is None or value is REMOVE:
            return ()
        return self.at(tuple(key.split(".")), value) or self._added(key, value)

    def at(self, path: Key, value: object) -> tuple[Edit, ...]:
        """The edits at an existing key; none if it is missing."""
        if value is REMOVE:
            return ()
        dotted, key = self.dotted, ".".join(map(str, path))
        last = next((one for one in reversed(dotted.overrides) if one.key == key and one.action != "delete"), None)
        if last is not None and dotted.command is not None:
            return replaced(dotted.command, last, spelled(value))
        found = dotted.config.at(*path)
        node = found.node
        if node is None or node.span.source is dotted.own or found.path != path:
            return ()
        document = next((one for one in dotted.documents if one.source is node.span.source), None)
        here = document.tree.get(*path) if document is not None and document.tree is not None else None
        return (Edit("set", path, value, node.span),) if here is not None and here.span == node.span else ()

    def _added(self, key: str, value: object) -> tuple[Edit, ...]:
        dotted = self.dotted
        if dotted.command is not None:
            return added(dotted.command, dotted.overrides, key, spelled(value))
        return (Edit("set", tuple(key.split(".")), value),) if len(dotted.documents) == 1 else ()

    def export(self, name: str, value: object) -> tuple[Edit, ...]:
        """Environment variables of the workers are set elsewhere."""
        return ()
