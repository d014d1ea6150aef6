"""One shape for YAML files, launch scripts and command lines: what was typed, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, NamedTuple

from preflight.finding import Key
from preflight.source import Source, Span


class Unknown:
    """A value that cannot be known before the job runs; `because` names the cause ("$NNODES", "$(hostname)")."""

    __slots__ = ("because",)

    def __init__(self, because: str = "") -> None:
        self.because = because

    def __repr__(self) -> str:
        return f"Unknown({self.because!r})"

    def __bool__(self) -> bool:
        raise TypeError("an unknown value is neither true nor false")


UNKNOWN = Unknown()


class Node(NamedTuple):
    """A YAML node. `value`: the scalar as the framework reads it, a tuple of Node, or a tuple of Entry.

    `style` is the quote or block character of a scalar, "" when plain; "flow" or "block" for collections.
    `span` of an alias's node is the anchored text, where a human typed it.
    """

    kind: Literal["scalar", "sequence", "mapping"]
    value: object
    span: Span
    style: str = ""
    anchor: str = ""

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.value if self.kind == "mapping" else ()  # type: ignore[return-value]

    @property
    def items(self) -> tuple[Node, ...]:
        return self.value if self.kind == "sequence" else ()  # type: ignore[return-value]

    def get(self, *path: str | int) -> Node | None:
        """The node at a path of keys and indices, as the framework sees it (last duplicate wins), or None."""
        node: Node | None = self
        for part in path:
            if node is None:
                return None
            if node.kind == "mapping":
                node = next((e.value for e in reversed(node.entries) if not e.shadowed and e.key.value == part), None)
            elif node.kind == "sequence" and isinstance(part, int) and part < len(node.items):
                node = node.items[part]
            else:
                return None
        return node

    def plain(self) -> object:
        """The value as plain dicts, lists and scalars."""
        if self.kind == "mapping":
            return {_hashable(e.key): e.value.plain() for e in self.entries if not e.shadowed}
        return [item.plain() for item in self.items] if self.kind == "sequence" else self.value


def _hashable(key: Node) -> object:
    return key.value if key.kind == "scalar" else repr(key.plain())


class Entry(NamedTuple):
    """One key of a mapping. shadowed: a later duplicate (or the child of a merge) wins. merged: came in by `<<`."""

    key: Node
    value: Node
    shadowed: bool = False
    merged: bool = False


class Setting(NamedTuple):
    """A value that somebody typed: its key, what it reads as, where it stands, and the places it flowed through.

    value: plain Python data or Unknown. editable: the text of `span` is exactly this value, so it can be replaced.
    maybe: set only on one branch of a condition that cannot be decided.
    """

    key: Key
    value: object
    span: Span
    key_span: Span
    uses: tuple[Span, ...] = ()
    editable: bool = True
    maybe: bool = False
    run: int = 0


class Piece(NamedTuple):
    """A stretch of a word with one origin. exact: `text` is literally the text of `span`, so it can be cut and replaced."""

    text: str | None
    span: Span
    uses: tuple[Span, ...] = ()
    exact: bool = True
    because: str = ""
    maybe: bool = False

    def cut(self, start: int, end: int) -> Piece:
        """Part of a known text."""
        assert self.text is not None
        span = Span(self.span.source, self.span.start + start, self.span.start + end) if self.exact else self.span
        return self._replace(text=self.text[start:end], span=span)


class Word(NamedTuple):
    """A word of a resolved command. text: None when unknown, `because` then says why.

    span: where a human typed it (the assignment, for a variable); uses: the places it flowed through to the command.
    pieces: what it is composed of, when that is more than one piece ("--log-dir=${DIR}/a").
    """

    text: str | None
    span: Span
    uses: tuple[Span, ...] = ()
    because: str = ""
    editable: bool = True
    maybe: bool = False
    pieces: tuple[Piece, ...] = ()

    @property
    def value(self) -> object:
        return self.text if self.text is not None else Unknown(self.because)

    @property
    def parts(self) -> tuple[Word, Word | None]:
        """A "--flag=value" word as flag and value, each with its own place and each known or not; any other word and None."""
        pieces = self.pieces or (Piece(self.text, self.span, self.uses, self.editable, self.because, self.maybe),)
        for index, piece in enumerate(pieces):
            if piece.text is None or (not index and not piece.text.startswith("--")):
                return self, None
            if (at := piece.text.find("=")) >= 0:
                flag, value = piece.cut(0, at), piece.cut(at + 1, len(piece.text))
                rest = pieces[index + 1 :] if value.text == "" and pieces[index + 1 :] else (value, *pieces[index + 1 :])
                return word_of((*pieces[:index], flag)), word_of(rest)
        return self, None


def word_of(pieces: tuple[Piece, ...]) -> Word:
    """The word that pieces make together; its span is where the pieces were put together."""
    if len(pieces) == 1:
        text, span, uses, exact, because, maybe = pieces[0]
        return Word(text, span, uses, because, exact and text is not None, maybe)
    whole = all(p.exact and p.text is not None and p.uses == pieces[0].uses for p in pieces)
    joined = whole and all(a.span.end == b.span.start and a.span.source is b.span.source for a, b in pairwise(pieces))
    text = None if any(p.text is None for p in pieces) else "".join(p.text or "" for p in pieces)
    common = _common(pieces)
    sites = [p.uses[len(p.uses) - common - 1] if len(p.uses) > common else p.span for p in pieces]
    first = sites[0]
    same = [site for site in sites if site.source is first.source]
    span = Span(first.source, min(site.start for site in same), max(site.end for site in same))
    uses = pieces[0].uses[len(pieces[0].uses) - common :]
    because = next((p.because for p in pieces if p.text is None), "")
    return Word(text, span, uses, because, joined, any(p.maybe for p in pieces), () if joined else pieces)


def _common(pieces: tuple[Piece, ...]) -> int:
    """How many of the last uses all pieces share."""
    count = min(len(p.uses) for p in pieces)
    while count and any(p.uses[len(p.uses) - count :] != pieces[0].uses[len(pieces[0].uses) - count :] for p in pieces):
        count -= 1
    return count


class Count(NamedTuple):
    """A number of devices, nodes or processes said by somebody. value: int or Unknown; placeholder: meant to be overridden."""

    value: int | Unknown
    span: Span | None
    source: str
    placeholder: bool = False


class Launch(NamedTuple):
    """A launcher's command taken apart: launcher options, the entry script, the words after it, the environment.

    launcher: "" when only the entry is given, else "torchrun", "msrun", "msrun_launcher.sh", "python", "srun", …
    world: every source that states the total number of processes or devices, the one to believe first;
    nodes, per_node: the same for nodes and devices per node, where somebody says them.
    open: positional parameters such as "$@" may add any flag, so the absence of a flag is not known.
    """

    launcher: str
    launcher_words: tuple[Word, ...]
    entry: Word
    words: tuple[Word, ...]
    environment: Mapping[str, Word] = MappingProxyType({})
    world: tuple[Count, ...] = ()
    open: bool = False
    nodes: Count | None = None
    per_node: Count | None = None


class Problem(NamedTuple):
    """A fact that a loader noticed and a rule reports: `kind` is the rule's id. keys: flags that the fix brings back."""

    kind: str
    message: str
    span: Span
    related: tuple[Span, ...] = ()
    fix: tuple[str, Span, str] | None = None  # title, span, replacement
    keys: tuple[str, ...] = ()


class Comment(NamedTuple):
    """A comment with its `#`; alone: nothing else stands on its line; covers: the offsets a suppression here covers."""

    span: Span
    alone: bool
    covers: Span


@dataclass(frozen=True, slots=True)
class Document:
    """One config as typed: a YAML tree, or one launch of a script or command line (`run` counts them in a script)."""

    source: Source
    kind: Literal["yaml", "script", "command"]
    tree: Node | None = None
    launch: Launch | None = None
    comments: tuple[Comment, ...] = ()
    problems: tuple[Problem, ...] = ()
    run: int = 0
    runs: int = 1
    also: tuple[Source, ...] = field(default=())

    @property
    def start(self) -> Span:
        """Where to point when a fault is nowhere in particular: the entry script's word, or the first character."""
        return self.launch.entry.span if self.launch else self.source.span(0)


def walk(node: Node, key: Key = ()) -> Iterator[tuple[Key, Node, Entry | None]]:
    """Every node below a node with its key path, in reading order; shadowed entries are left out. Depth is bounded by the loader."""
    stack: list[tuple[Key, Node, Entry | None]] = [(key, node, None)]
    while stack:
        here, current, entry = stack.pop()
        yield here, current, entry
        if current.kind == "mapping":
            live = [e for e in current.entries if not e.shadowed]
            stack.extend(((*here, _part(e.key)), e.value, e) for e in reversed(live))
        elif current.kind == "sequence":
            stack.extend(((*here, i), item, None) for i, item in reversed(list(enumerate(current.items))))


def _part(key: Node) -> str | int:
    return key.value if isinstance(key.value, (str, int)) else str(_hashable(key))
