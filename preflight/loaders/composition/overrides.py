"""Overrides of a command line as Hydra reads them: key=value, +key=value, ++key=value, ~key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal as Of

from preflight.loaders.composition.grammar import element
from preflight.loaders.composition.merging import WORD, WORDS, put, removed
from preflight.loaders.composition.parts import Call, Literal, Malformed, Many, Pairs, Part, Reference, Text
from preflight.loaders.composition.values import Composed, Found, as_node
from preflight.loaders.document import Node, Word, word_of
from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.text import Span
from preflight.source.word import Piece

KEY = lazy_pattern(r"(?P<sign>\+\+|\+|~)?(?P<key>[\w$][\w$.@:/-]*)(?P<equal>=)?")
SIGNS: dict[str, Of["set", "add", "force", "delete"]] = {"": "set", "+": "add", "++": "force", "~": "delete"}


class Override(NamedTuple):
    """One override. node: its value, None for ~key. word: the whole of it as typed, value: what is behind the sign."""

    action: Of["set", "add", "force", "delete"]
    key: str
    word: Word
    key_span: Span
    node: Node | None = None
    value: Word | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The keys of a dotted key."""
        return tuple(self.key.split("."))


class Refused(NamedTuple):
    """An override that Hydra does not take. kind: "unknown" (the key is not in the config), "exists" (there is a value
    already), "absent" (nothing to delete)."""

    kind: Of["unknown", "exists", "absent"]
    override: Override


def read_override(word: Word) -> Override | None:
    """A word as an override; None where it is none, or where its key is not known."""
    pieces = word.pieces or (Piece(word.text, word.span, word.uses, word.editable, word.because, word.maybe),)
    head = pieces[0].text
    match = KEY.match(head) if head is not None else None
    if match is None or head is None:
        return None
    sign, key = SIGNS[match["sign"] or ""], match["key"]
    cut = pieces[0].cut(match.start("key"), match.end("key"))
    if not match["equal"]:
        return Override(sign, key, word, cut.span) if sign == "delete" and match.end() == len(head) else None
    rest = pieces[0].cut(match.end(), len(head))
    value = word_of(pieces[1:] if rest.text == "" and len(pieces) > 1 else (rest, *pieces[1:]))
    return Override(sign, key, word, cut.span, _node(value), value)


def _node(value: Word) -> Node:
    """The value of an override as a node at its place."""
    typed = Node("scalar", value.value, value.span, WORD if value.editable else WORDS)
    if value.text is None:
        return typed
    try:
        part = element(value.text)
    except Malformed as error:
        return typed._replace(value=value._replace(text=None, because=f"{value.text:.40}: {error}").value)
    return _made(part, typed)


def _made(part: Part, typed: Node) -> Node:
    """A value; one with an interpolation stays the text that it is, to be followed in the config."""
    if isinstance(part, Text | Reference | Call):
        return typed
    return as_node(part, typed._replace(style=typed.style if isinstance(part, Literal | Many | Pairs) else WORDS))


def apply(root: Node, overrides: Iterable[Override], complete: bool = True) -> tuple[Node, tuple[Refused, ...]]:
    """A config with overrides, and those that Hydra refuses. complete: no key of the config is missing here."""
    refused: list[Refused] = []
    for override in overrides:
        found = Composed(root, "" if complete else "not all of it is read").at(*override.path)
        if override.action == "delete":
            if found.absent:
                refused.append(Refused("absent", override))
            root = removed(root, override.path)
            continue
        assert override.node is not None
        if override.action == "set" and found.absent:
            refused.append(Refused("unknown", override))
        elif override.action == "add" and override.node.kind == "scalar" and _has_value(found):
            refused.append(Refused("exists", override))
        key = Node("scalar", override.key, override.key_span, WORD)
        root = put(root, override.path, key, override.node)
    return root, tuple(refused)


def _has_value(found: Found) -> bool:
    return found.known and (found.value is not None or (found.node is not None and found.node.kind != "scalar"))
