"""Hydra overrides on a command line, and their edits."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from preflight.loaders.composition.grammar import Call, Literal, Malformed, Many, Pairs, Part, Reference, Text, element
from preflight.loaders.composition.merging import WORD, WORDS, put, removed
from preflight.loaders.composition.resolved_values import Composed, Found, as_node
from preflight.loaders.document import Document, Node, Word, word_of
from preflight.source.finding import Edit
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.resolved_words import Piece
from preflight.source.source_file import Span
from preflight.source.typing_without_import import Literal as Of

KEY = lazy_pattern(r"(?P<sign>\+\+|\+|~)?(?P<key>[\w$][\w$.@:/-]*)(?P<equal>=)?")
SIGNS: dict[str, Of["set", "add", "force", "delete"]] = {"": "set", "+": "add", "++": "force", "~": "delete"}


class Override(NamedTuple):
    """One override. node: its value, None for ~key. word: the complete text, value: the part after the equals sign."""

    action: Of["set", "add", "force", "delete"]
    key: str
    word: Word
    key_span: Span
    node: Node | None = None
    value: Word | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The parts of a dotted key."""
        return tuple(self.key.split("."))


class Refused(NamedTuple):
    """An override that Hydra rejects. kind: "unknown" (the key is not in the config), "exists" (there is a value
    already), "absent" (nothing to delete)."""

    kind: Of["unknown", "exists", "absent"]
    override: Override


def read_override(word: Word) -> Override | None:
    """A word as an override; None if it is not one, or its key is unknown."""
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
    """A value; with an interpolation it stays text, which is resolved in the config."""
    if isinstance(part, Text | Reference | Call):
        return typed
    return as_node(part, typed._replace(style=typed.style if isinstance(part, Literal | Many | Pairs) else WORDS))


def apply(root: Node, overrides: Iterable[Override], complete: bool = True) -> tuple[Node, tuple[Refused, ...]]:
    """A config with overrides, and the rejected ones. complete: the config has all of its keys."""
    refused: list[Refused] = []
    for override in overrides:
        found = Composed(root, "" if complete else "it is only partly read").at(*override.path)
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


def replaced(document: Document, override: Override, text: str) -> tuple[Edit, ...]:
    """The edit that changes the value of an override; none if it comes from several places."""
    word = override.value
    if word is None or document.launch is None:
        return ()
    shared = any(_has(other, word) for other in document.launch.words if other is not override.word)
    if shared and word.uses and re.fullmatch(r"\$\w+|\$\{\w+\}", word.uses[0].text):
        span = word.uses[0]
    elif shared or not word.editable or word.maybe or word.text is None:
        return ()
    else:
        span = word.span
    if span.source is not document.source:
        return ()
    return (Edit("splice", (override.key,), _quoted(text, span), span, document.run),)


def added(document: Document, overrides: Iterable[Override], key: str, text: str, sign: str = "") -> tuple[Edit, ...]:
    """The edit that adds another override after the one with which it shares most of its path."""
    beside = [one for one in overrides if _stands_alone(document, one.word)]
    if not beside:
        return ()
    best = max(beside, key=lambda one: (_shared_parts(one.key, key), one.word.span.start))
    written = f"{sign}{key}={_quoted(text, None)}"
    span = best.word.span
    if document.kind == "script":
        from preflight.loaders.shell.edit_ranges_and_comments import Place, widened

        place, line = Place(document.source, widened(span)).after(written)
        return (Edit("splice", (key,), line, place, document.run),)
    end = span.end + (document.source.text[span.end : span.end + 1] == "'")
    return (Edit("splice", (key,), f" {written}", Span(document.source, end, end), document.run),)


def _stands_alone(document: Document, word: Word) -> bool:
    """Whether a word is written literally in this file, so that another can follow it."""
    known = word.text is not None and not word.maybe and word.span.source is document.source
    return known and word.editable and word.span.text == word.text


def _has(other: Word, word: Word) -> bool:
    spans = [piece.span for piece in other.pieces] or [other.span]
    return word.span in spans


def _shared_parts(one: str, other: str) -> int:
    a, b = one.split("."), other.split(".")
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _quoted(text: str, span: Span | None) -> str:
    """A value in shell notation; inside quotes it is unchanged."""
    inside = span is not None and span.source.text[span.start - 1 : span.start] in ("'", '"')
    return text if inside else shlex.quote(text)


def spelled(value: object) -> str:
    """A value in Hydra notation."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{','.join(map(spelled, value))}]"
    return str(value)
