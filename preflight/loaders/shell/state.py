"""The variables of a script, and the functions that resolve them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby

from preflight.loaders.document import Piece
from preflight.loaders.shell.bash_parser import Node, Tree
from preflight.loaders.shell.word_splitting import PILED, Value
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span
from preflight.source.typing_without_import import Protocol

Read = Callable[[], Value | None]
"""The known stdin of a command, expanded only on demand."""


class Expands(Protocol):
    """Evaluates expansions; arithmetic asks it for the variables in an expression."""

    state: State
    unset: Callable[[str, Span | None], Value]
    depth: int

    def value(self, tree: Tree, node: Node) -> Value: ...


class RunsCommands(Protocol):
    """Determines the effect of a single command."""

    def command(self, tree: Tree, node: Node, around: Node | None = None, given: Read | None = None) -> None: ...
    def redirected(self, tree: Tree, node: Node, given: Read | None) -> None: ...
    def printed(self, tree: Tree, node: Node, given: Read | None, whole: bool = True) -> Read: ...


MAX_PIECES, MANY_PIECES = 20_000, 40
MAX_TEXT = 2_000_000
MAX_OTHERS = 4
MAX_MAYBE = 1500


class Variable(NamedTuple):
    """A variable. items: one value, or the elements of an array. place: the last assignment. exported: on every
    possible path; sometimes: on one of them. others: alternative commands, if branches differ and the value is
    therefore unknown.
    """

    items: tuple[Value, ...]
    array: bool
    place: Span
    exported: bool = False
    keys: tuple[str, ...] = ()
    sometimes: bool = False
    others: tuple[Value, ...] = ()

    @property
    def scalar(self) -> Value:
        return self.items[0] if self.items else ()

    @property
    def holds_options(self) -> bool:
        """Whether its content begins like an option."""
        first = next(
            (piece.text for value in self.items for piece in value if piece.text is None or piece.text.strip()), None
        )
        return first is not None and OPTION.match(first.lstrip()) is not None


OPTION = lazy_pattern(r"--|(?<![\w.@/+~-])[+~]{0,2}[A-Za-z_]\w*[.@/][\w.@/-]+=")
"""The beginning of an option, or of a setting without dashes whose key has a dot: these cannot be assignments."""
Changes = dict[str, Variable | None]
FILE = "<"
"""Prefix for the name of a file that the script writes, because such names are stored next to those of variables."""


class State:
    """Variables by name, and the files that the script writes; changes inside a frame can be undone."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.written: dict[str, Variable] = {}
        """The text of each file that the script writes, by FILE and its path."""
        self.ever: set[str] = set()
        self.early: set[str] = set()
        """Names that were read before they were set."""
        self.by_caller: set[str] = set()
        """Names that only a loop over the script's arguments sets."""
        self.several = False
        """A variable may hold one of several commands."""
        self.foreign = False
        """An unreadable file was sourced: it may set any variable."""
        self.held: frozenset[str] = frozenset()
        """Names whose value is stated outside the script, so that its assignments have no effect."""
        self._frames: list[Changes] = []

    def get(self, name: str) -> Variable | None:
        return self.variables.get(name)

    def miss(self, name: str) -> None:
        """An unset variable was read."""
        if name not in self.ever:
            self.early.add(name)

    def late(self, name: str, use: Span) -> bool:
        """Whether a variable is read before it is set later in the script."""
        variable = self.variables.get(name) if name in self.early else None
        return variable is not None and variable.place.source is use.source and variable.place.start > use.start

    def put(self, name: str, variable: Variable | None) -> None:
        """Set or unset a variable."""
        if name in self.held:
            return
        table = self._table(name)
        for frame in self._frames[-1:]:
            frame.setdefault(name, table.get(name))
        if table is self.variables:
            self.ever.add(name)
        if variable is None:
            table.pop(name, None)
        else:
            table[name] = variable

    def _table(self, name: str) -> dict[str, Variable]:
        return self.written if name.startswith(FILE) else self.variables

    @contextmanager
    def frame(self) -> Iterator[Changes]:
        """Collect the changes of a block as name → value before it."""
        changes: Changes = {}
        self._frames.append(changes)
        try:
            yield changes
        finally:
            self._frames.pop()
            for name, old in changes.items():
                for outer in self._frames[-1:]:
                    outer.setdefault(name, old)

    def undo(self, changes: Changes) -> Changes:
        """Undo changes; returns the values that they had set."""
        new: Changes = {name: self._table(name).get(name) for name in changes}
        for name, old in changes.items():
            if old is None:
                self._table(name).pop(name, None)
            else:
                self._table(name)[name] = old
        return new

    def merge(self, branches: list[Changes], because: str, defaults: frozenset[str] = frozenset()) -> None:
        """Merges the effects of alternative branches (an empty one set nothing), because it is unknown which was taken.
        defaults: variables that a branch sets because they are unset; that value is used.
        """
        for name in {name: None for branch in branches for name in branch}:
            before = self._table(name).get(name)
            after = [branch.get(name, before) if name in branch else before for branch in branches]
            merged = _either(after, because, name in defaults or (name.startswith(FILE) and _one_text(after)))
            self.several = self.several or (merged is not None and bool(merged.others))
            self.put(name, merged)


def _either(values: list[Variable | None], because: str, default: bool) -> Variable | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if default:
        return known[0]
    sometimes = any(v.exported or v.sometimes for v in known)
    if all(v is not None and v.items == known[0].items for v in values):
        return known[0]._replace(exported=all(v.exported for v in known), sometimes=sometimes)
    last = known[-1]._replace(
        exported=all(v.exported for v in known) and len(known) == len(values), sometimes=sometimes
    )
    if len(known) == len(values) and _say_the_same(known):
        return last._replace(items=tuple(tuple(piece._replace(exact=False) for piece in v) for v in last.items))
    if any(v.array for v in known) or all(v is None or _is_group(v.scalar) for v in values) or _same_command(values):
        return last._replace(items=_maybe(values, last.array))
    unknown = Piece(None, last.place, exact=False, because=because)
    return last._replace(items=((unknown,),), array=False, others=_commands(known))


def _one_text(values: list[Variable | None]) -> bool:
    """Whether each branch that writes a file writes the same; other branches do not write it."""
    known = [value.items for value in values if value is not None]
    return bool(known) and all(items == known[0] for items in known)


def _say_the_same(known: list[Variable]) -> bool:
    """Whether every branch writes the same text: then it is known, with several places."""
    texts = [[[piece.text for piece in value] for value in variable.items] for variable in known]
    return all(text == texts[0] for text in texts) and not any(None in value for value in texts[0])


def _same_command(values: list[Variable | None]) -> bool:
    """One command to which branches add options."""
    if any(v is None or v.others for v in values):
        return False
    scalars = [v.scalar for v in values if v is not None]
    shortest = min(scalars, key=len)
    return (_is_command(shortest) or _is_script(shortest)) and all(
        _starts(value, shortest) and _is_group(value[len(shortest) :]) for value in scalars
    )


def _starts(value: Value, start: Value) -> bool:
    return all(_same((a,), (b,)) for a, b in zip(value, start, strict=False))


def _commands(known: list[Variable]) -> tuple[Value, ...]:
    """The commands among the values, each once."""
    found: list[Value] = []
    for value in (value for variable in known for value in (variable.others or (variable.scalar,))):
        if _is_command(value) and not any(_same(value, other) for other in found):
            found.append(value)
    return tuple(found[:MAX_OTHERS])


def _is_command(value: Value) -> bool:
    """A command line that runs a Python script with arguments."""
    text = "".join(piece.text or "" for piece in value)
    return ".py " in text and len(text.split(".py ", 1)[0].split()) > 1


def _is_script(value: Value) -> bool:
    """A Python script with its arguments, to which a launcher is added later."""
    text = "".join(piece.text or "" for piece in value)
    return ".py " in text and text.split(None, 1)[0].endswith(".py")


def _is_group(value: Value) -> bool:
    """A list of flags, or nothing. A single dash also begins the end of a name."""
    text = next((piece.text for piece in value if piece.text is None or piece.text.strip()), "")
    return text is not None and (
        not text or text.lstrip().startswith("--") or (text.lstrip().startswith("-") and " " in text.strip())
    )


def _maybe(values: list[Variable | None], array: bool) -> tuple[Value, ...]:
    """Everything that any branch sets: the common beginning is certain, the rest is possible."""
    lists: list[list[Value]] = [
        (list(v.items) if array else [(p,) for p in v.scalar]) if v is not None else [] for v in values
    ]
    if sum(map(len, lists)) > MAX_MAYBE:
        place = next(v.place for v in values if v is not None)
        return ((Piece(None, place, exact=False, because=f"${place.text.partition('[')[0]}{PILED}"),),)
    shared = 0
    while all(len(items) > shared for items in lists) and all(
        _same(items[shared], lists[0][shared]) for items in lists
    ):
        shared += 1
    found = lists[0][:shared]
    for items in lists:
        for value in items[shared:]:
            found.append(tuple(piece._replace(maybe=True) for piece in value))
        if not array and any(piece.text is None or piece.text.strip() for value in items[shared:] for piece in value):
            blank = items[-1][-1]
            found.append((Piece(" ", blank.span, exact=False, maybe=True),))
    return tuple(found) if array else (tuple(piece for value in found for piece in value),)


def _same(one: Value, other: Value) -> bool:
    """Whether two values are equal, regardless of their origin."""
    return len(one) == len(other) and all(
        a.text == b.text and a.span == b.span and a.maybe == b.maybe for a, b in zip(one, other, strict=True)
    )


def _together(value: Value) -> Iterator[Piece]:
    """Pieces with adjacent certain ones merged, at the place of the first."""
    for known, group in groupby(value, lambda piece: piece.text is not None and not piece.maybe):
        pieces = list(group)
        whole = pieces[0]._replace(text="".join(piece.text or "" for piece in pieces), exact=False)
        yield from [whole] if known else pieces


def bounded(value: Value) -> Value:
    """A value of reasonable size: a longer one is unknown; one with many parts and no options, such as a list of data
    files, is composed."""
    if len(value) > MANY_PIECES and not any("--" in (piece.text or "") for piece in value):
        value = tuple(_together(value))
    if len(value) > MAX_PIECES or sum(len(p.text or "") for p in value) > MAX_TEXT:
        return (Piece(None, value[0].span, exact=False, because="a value that grows without bound"),)
    return value
