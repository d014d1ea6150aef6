"""Front ends with options as keys: on a command line, or in a flat YAML file."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron.derivation_namespace import Run, derives
from preflight.dialects.megatron.dialect import Writer
from preflight.dialects.megatron.options import Flag
from preflight.dialects.megatron.parse_faults import STRAY_WORD, UNKNOWN_FLAG
from preflight.dialects.megatron.parser_input import Spelled, spell, spell_environment
from preflight.dialects.megatron.parsing import Parsed, parse
from preflight.dialects.megatron.run_derivation import tell
from preflight.frontends.front_end import FrontEnd, of_front_end, unread
from preflight.frontends.megatron_run import Typed, read
from preflight.frontends.renamed_options import with_moves
from preflight.loaders.document import Document, Node, Word
from preflight.run.arguments import REMOVE
from preflight.source.finding import Edit
from preflight.source.record import replace


class OptionWriter(Writer):
    """Writes options; boolean options get one of these words."""

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edits that set an argument."""
        flag = next(iter(self.table.flags(name)), None)
        if flag is None or flag.kind != "yesno" or not (value is None or isinstance(value, bool)):
            return super().put(name, value)
        off = tuple(self.edit("remove", option) for option in self.spelt.get(name, ()) if option != flag.option)
        return (*off, self.edit("set", flag.option, "false" if value is False else "true"))


def typed(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> Typed:
    """The options of a launch."""
    spelled = spell(document, surroundings.request.environment)
    parsed, keys = Parsed(), front_end.keys
    writer = OptionWriter(keys, spelled, parsed.spelt, document.run)
    parse(spelled.words, keys, spelled.key, document.run, parsed, writer.put, spelled.given)
    faults = of_front_end(front_end, parsed.faults, stated=surroundings.request.target is not None)
    parsed.faults = list(with_moves(front_end, faults, spelled.words))
    if surroundings.request.given:
        tell(surroundings.request.given, keys, parsed, document.start)
    return Typed(parsed, spelled, writer, (document,))


ENVIRONMENT, CONFIG = "ENV", "--config"


class FileWriter:
    """Writes the keys of a flat file."""

    def __init__(self, front_end: FrontEnd, parsed: Parsed, document: Document) -> None:
        self.front_end, self.parsed, self.document = front_end, parsed, document

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edit that sets an argument; empty if it has no key."""
        typed = self.parsed.spelt.get(name) or [flag.option for flag in self.front_end.keys.flags(name)][:1]
        key = tuple(option.removeprefix("--") for option in typed[-1:])
        if not key:
            return ()
        span = self.document.start
        if value is REMOVE:
            return (Edit("remove", key, span=span),)
        return (Edit("set", key, True if value is None else value, span),)

    def export(self, name: str, value: object) -> tuple[Edit, ...]:
        """A variable of the job."""
        return (Edit("set", (ENVIRONMENT, name), str(value)),)


def typed_in_file(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> Typed:
    """The options of a file."""
    assert document.tree is not None
    parsed = Parsed()
    writer = FileWriter(front_end, parsed, document)
    read_file(front_end, document, parsed, writer)
    spelled = Spelled((), lambda option: (option,), spell_environment(surroundings.request.environment), yaml=True)
    return Typed(parsed, spelled, writer, (document,))


def behind_file(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> Typed:
    """The options of a launch; if --config, or its first word, names a file of options, they override those."""
    launch = document.launch
    texts = [word.text for word in launch.words] if launch is not None else []
    at = texts.index(CONFIG) + 1 if CONFIG in texts else 0
    path = texts[at] if at < len(texts) else None
    if launch is None or path is None or not path.endswith((".yaml", ".yml", ".json")):
        return typed(front_end, document, surroundings)
    found = surroundings.read(document, path)
    words = launch.words[: max(at - 1, 0)] + launch.words[at + 1 :]
    rest = replace(document, launch=launch._replace(words=words))
    over = typed(front_end, rest, surroundings)
    if found is None or found.tree is None:
        over.parsed.open = True
        return over
    below = typed_in_file(front_end, found, surroundings)
    for name, value in below.parsed.written.items():
        over.parsed.written.setdefault(name, value)
    over.parsed.faults += below.parsed.faults
    return over._replace(documents=(document, found))


def read_file(front_end: FrontEnd, document: Document, parsed: Parsed, writer: FileWriter) -> None:
    """The options of a file, parsed as the words that the front end generates from them."""
    tree = document.tree
    words = tuple(_words(tree)) if tree is not None else ()
    parse(words, front_end.keys, lambda option: (option.removeprefix("--"),), document.run, parsed, writer.put)
    faults = list(parsed.faults)
    parsed.faults = [fault for fault in faults if fault.kind not in (UNKNOWN_FLAG, STRAY_WORD)]
    for fault in faults:
        name = fault.span.text
        if fault.kind == UNKNOWN_FLAG and not f"--{name}".startswith(front_end.elsewhere or ("\0",)):
            told = unread(front_end, f"--{name}", fault.span, path=(name,), shown=name)
            parsed.faults += with_moves(front_end, [told])


def _words(tree: Node) -> Iterator[Word]:
    """`--key value` of each entry, with the value written by `str`; the environment is not an option."""
    for entry in tree.entries:
        if entry.shadowed or entry.key.value == ENVIRONMENT:
            continue
        if entry.value.kind == "mapping":  # specific to a role, or JSON text
            continue
        yield Word(f"--{entry.key.value}", entry.key.span)
        if entry.value.kind == "sequence":
            yield from (Word(str(item.plain()), item.span, editable=False) for item in entry.value.items)
        else:
            yield Word(str(entry.value.plain()), entry.value.span, editable=entry.value.style == "")


__all__ = ["Flag", "FrontEnd", "Run", "derives", "read_options"]


def read_options(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> Reading:
    """The run that a launch or a flat file starts through a front end."""
    words = typed if document.launch is not None else typed_in_file
    return read(front_end, document, surroundings, words(front_end, document, surroundings))
