"""One form for YAML files, launch scripts and command lines: what was written, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from preflight.source.finding import Key
from preflight.source.record import NamedTuple, dataclass, field
from preflight.source.resolved_words import UNKNOWN as UNKNOWN
from preflight.source.resolved_words import Piece as Piece
from preflight.source.resolved_words import Unknown as Unknown
from preflight.source.resolved_words import Word as Word
from preflight.source.resolved_words import word_of as word_of
from preflight.source.source_file import Source, Span
from preflight.source.typing_without_import import Literal

MARK = "preflight:"
"""Text that every suppression contains; a text without it has no relevant comment."""
REFUSED = frozenset(["shell-syntax", "script-ends-early"])
"""Kinds of problems at which bash stops: later commands do not run."""
LONG = 1000
"""Entries of a mapping above which a linear look-up is slow."""
MAX_DIGITS = 4000
"""Maximum characters of a number in a file: Python and PyYAML take time quadratic in their number."""


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

    @property
    def shown(self) -> str:
        """The original text if it is on one line, otherwise the plain value."""
        text = self.span.text
        return str(self.plain()) if "\n" in text else text

    def get(self, *path: str | int) -> Node | None:
        """The node at a path of keys and indices, as the framework sees it (last duplicate wins), or None."""
        node: Node | None = self
        for part in path:
            if node is None:
                return None
            if node.kind == "mapping":
                node = _looked_up(node.entries, part)
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


def _looked_up(entries: tuple[Entry, ...], part: str | int) -> Node | None:
    """The value of a key, from the last entry that counts. Texts of a long mapping are kept in an index."""
    if len(entries) > LONG and type(part) is str:
        return _index(_Same(entries)).get(part)
    for entry in reversed(entries):
        if entry.key.value == part and not entry.shadowed:
            return entry.value
    return None


class _Same:
    """Compares entries by identity, not by content."""

    __slots__ = ("entries",)

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries

    def __hash__(self) -> int:
        return id(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.entries is other.entries


@lru_cache(maxsize=4)
def _index(same: _Same) -> dict[str, Node]:
    return {
        entry.key.value: entry.value
        for entry in same.entries
        if not entry.shadowed and isinstance(entry.key.value, str)
    }


class Entry(NamedTuple):
    """One key of a mapping. shadowed: a later duplicate (or the child of a merge) wins. merged: inherited through
    `<<`."""

    key: Node
    value: Node
    shadowed: bool = False
    merged: bool = False


class Setting(NamedTuple):
    """A value in a file: its key, its content, its place, and the places that it passed through.

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


class Count(NamedTuple):
    """A stated number of devices, nodes or processes. value: int or Unknown; placeholder: meant to be overridden.
    assumed: the environment variable that sets it at launch, if the script has a default for it.
    """

    value: int | Unknown
    span: Span | None
    source: str
    placeholder: bool = False
    assumed: str = ""


class Launch(NamedTuple):
    """A launcher's command taken apart: launcher options, the entry script, the words after it, the environment.

    launcher: "" if only the entry is given, otherwise "torchrun", "msrun", "msrun_launcher.sh", "python", "srun", …
    world: every source that states the total number of processes or devices, the most reliable first; nodes, per_node:
    the same for nodes and devices per node, if stated; device: the name of the accelerator. open: any flag may be
    added, so the absence of a flag is uncertain. assumed: "$@", $1, $EXTRA_ARGS and the like, where the caller of the
    script may add flags. They are not words, unless they may be the value of the flag in front of them. lost: the
    number of last words that bash does not pass on, because a continuation is missing; more than there are if not even
    the entry is reached. directory: the folder that a script changes to before it; None if it stays in the initial one.
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
    device: Word | None = None
    assumed: tuple[Word, ...] = ()
    lost: int = 0
    directory: Word | None = None


class Problem(NamedTuple):
    """A fact that a loader noticed and a rule reports: `kind` is the rule's id. keys: flags that the fix restores.
    crash: the failure of the framework's reader of the value, if argparse does not refuse it: "enum" or "pattern".
    before: the releases that accept the refused value, as "megatron before 0.9". in_use: one of them is still in use.
    harmless: the run is the same without it. unknown_option: the parser has no such option. safe: the fix does not
    change the training. everywhere: every release refuses it.
    """

    kind: str
    message: str
    span: Span
    related: tuple[Span, ...] = ()
    fix: tuple[str, Span, str] | None = None  # title, span, replacement
    keys: tuple[str, ...] = ()
    crash: str = ""
    before: str = ""
    in_use: bool = False
    harmless: bool = False
    unknown_option: bool = False
    safe: bool = False
    everywhere: bool = False


class Comment(NamedTuple):
    """A comment with its `#`; alone: nothing else is on its line; covers: the offsets that a suppression here
    covers."""

    span: Span
    alone: bool
    covers: Span


@dataclass(frozen=True, slots=True)
class Document:
    """One config as written: a YAML tree, or one launch (`run` counts them) of a script, a command line or a manifest.
    also: other files whose text is part of it. looked: paths that were opened or looked for on the way to it. texts:
    every text among the keys and scalars of the tree, once. meant: the launch that a script never reaches, by which its
    framework is recognized.
    """

    source: Source
    kind: Literal["yaml", "script", "command", "manifest", "python"]
    tree: Node | None = None
    launch: Launch | None = None
    comments: tuple[Comment, ...] = ()
    problems: tuple[Problem, ...] = ()
    run: int = 0
    runs: int = 1
    also: tuple[Source, ...] = field(default=())
    looked: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()
    meant: Launch | None = None

    @property
    def start(self) -> Span:
        """The place of faults without a particular place: the entry script's word, or the first character."""
        return self.launch.entry.span if self.launch else self.source.span(0)


def walk(node: Node, key: Key = ()) -> Iterator[tuple[Key, Node, Entry | None]]:
    """Every descendant of a node with its key path, in reading order, without shadowed entries."""
    stack: list[tuple[Key, Node, Entry | None]] = [(key, node, None)]
    while stack:
        here, current, entry = stack.pop()
        yield here, current, entry
        if current.kind == "mapping":
            stack += [((*here, _part(e.key)), e.value, e) for e in reversed(current.entries) if not e.shadowed]
        elif current.kind == "sequence":
            stack += [((*here, i), item, None) for i, item in reversed(list(enumerate(current.items)))]


def _part(key: Node) -> str | int:
    return key.value if isinstance(key.value, (str, int)) else str(_hashable(key))
