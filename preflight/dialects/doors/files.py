"""Flat YAML files of options: `key: value` is `--key value`."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.dialects import Surroundings
from preflight.dialects.doors.commands import typed
from preflight.dialects.doors.door import Door
from preflight.dialects.doors.reading import Typed
from preflight.dialects.doors.unread import unread
from preflight.dialects.megatron.command_words import Spelled, spell_environment
from preflight.dialects.megatron.parse_faults import STRAY_WORD, UNKNOWN_FLAG
from preflight.dialects.megatron.parsing import Parsed, parse
from preflight.loaders.document import Document, Node, Word
from preflight.run.arguments import REMOVE
from preflight.source.finding import Edit
from preflight.source.record import replace

ENVIRONMENT, CONFIG = "ENV", "--config"


class FileWriter:
    """Writes keys of a flat file."""

    def __init__(self, door: Door, parsed: Parsed, document: Document) -> None:
        self.door, self.parsed, self.document = door, parsed, document

    def put(self, name: str, value: object) -> tuple[Edit, ...]:
        """The edit that gives an argument a value; empty for one that has no key."""
        typed = self.parsed.spelt.get(name) or [flag.option for flag in self.door.keys.flags(name)][:1]
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


def typed_in_file(door: Door, document: Document, surroundings: Surroundings) -> Typed:
    """The options of a file."""
    assert document.tree is not None
    parsed = Parsed()
    writer = FileWriter(door, parsed, document)
    read_file(door, document, parsed, writer)
    spelled = Spelled((), lambda option: (option,), spell_environment(surroundings.request.environment), yaml=True)
    return Typed(parsed, spelled, writer, (document,))


def behind_file(door: Door, document: Document, surroundings: Surroundings) -> Typed:
    """The options of a launch; where its first word is a file of options, over those."""
    launch = document.launch
    texts = [word.text for word in launch.words] if launch is not None else []
    at = texts.index(CONFIG) + 1 if CONFIG in texts else 0
    path = texts[at] if at < len(texts) else None
    if launch is None or path is None or not path.endswith((".yaml", ".yml", ".json")):
        return typed(door, document, surroundings)
    found = surroundings.read(document, path)
    rest = replace(document, launch=launch._replace(words=launch.words[:at] + launch.words[at + 1 :]))
    over = typed(door, rest, surroundings)
    if found is None or found.tree is None:
        over.parsed.open = True
        return over
    below = typed_in_file(door, found, surroundings)
    for name, value in below.parsed.written.items():
        over.parsed.written.setdefault(name, value)
    over.parsed.faults += below.parsed.faults
    return over._replace(documents=(document, found))


def read_file(door: Door, document: Document, parsed: Parsed, writer: FileWriter) -> None:
    """The options of a file, parsed as the words that the door makes of them."""
    tree = document.tree
    words = tuple(_words(tree)) if tree is not None else ()
    parse(words, door.keys, lambda option: (option.removeprefix("--"),), document.run, parsed, writer.put)
    faults = list(parsed.faults)
    parsed.faults = [fault for fault in faults if fault.kind not in (UNKNOWN_FLAG, STRAY_WORD)]
    for fault in faults:
        name = fault.span.text
        if fault.kind == UNKNOWN_FLAG and not f"--{name}".startswith(door.elsewhere or ("\0",)):
            parsed.faults.append(unread(door, f"--{name}", fault.span, path=(name,), shown=name))


def _words(tree: Node) -> Iterator[Word]:
    """`--key value` of each entry, as `str` writes the value; the environment is no option."""
    for entry in tree.entries:
        if entry.shadowed or entry.key.value == ENVIRONMENT:
            continue
        if entry.value.kind == "mapping":  # what a role has of its own, or a text of JSON
            continue
        yield Word(f"--{entry.key.value}", entry.key.span)
        if entry.value.kind == "sequence":
            yield from (Word(str(item.plain()), item.span, editable=False) for item in entry.value.items)
        else:
            yield Word(str(entry.value.plain()), entry.value.span, editable=entry.value.style == "")
