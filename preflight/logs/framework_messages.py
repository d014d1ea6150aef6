"""The framework statement behind a message, from tables of all messages in all described releases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from zlib import crc32

from preflight import schemas
from preflight.logs.failures import Failure, Frame
from preflight.source.record import NamedTuple

WORD = re.compile(r"[A-Za-z_]{2,}|[\u4e00-\u9fff]")
DIGITS = 3
"""Characters of a hash."""
KEPT = 6
"""Maximum number of words stored for a message: its rarest ones, in order."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def words(text: str) -> list[str]:
    """The words of a text, without numbers."""
    return WORD.findall(text.lower())


@lru_cache(maxsize=1 << 14)
def hashed(word: str) -> str:
    """The hash of a word, of a number of characters."""
    number = crc32(word.encode())
    return "".join(_LETTERS[number >> shift & 63] for shift in (0, 6, 12))


CONDITION = "="
"""Used instead of an exception if the words of a row are those of an assertion's condition."""
FEW = 3
"""The number of words with which a message identifies its statement without a frame."""


ELSEWHERE = 8
"""The number of words with which a message identifies its statement if the frames show other files."""
ALONE = 0.8
"""The share of a message's words that a statement must have if there is no frame."""


PYTHONS_OWN = ("AttributeError", "KeyError", "IndexError", "NameError", "UnboundLocalError", "ModuleNotFoundError")
"""Exceptions with texts from Python: only their frame identifies a statement."""


class Row(NamedTuple):
    """A message in a table. number: its number of words. first, last: releases by number. sites: its statements in the
    evidence."""

    framework: str
    hashes: tuple[str, ...]
    number: int
    raised: str
    file: str
    function: str
    first: int
    last: int
    sites: tuple[str, ...]

    @property
    def place(self) -> str:
        """File and function."""
        return f"{self.file}:{self.function}"


class Statement(NamedTuple):
    """The statement behind a failure. rules: those for this statement. releases: the oldest and the newest release with
    it. sure: no other statement has these words, or a frame in the log names it."""

    framework: str
    place: str
    rules: tuple[str, ...]
    releases: tuple[str, str]
    sites: tuple[str, ...]
    sure: bool


class Table:
    """The messages of a framework."""

    def __init__(self, framework: str) -> None:
        data = schemas.read(f"{framework}/messages")
        self.framework, self.releases = framework, tuple(data["commits"])
        self._data = data
        self._by_word: dict[str, list[int]] = {}
        self._by_place: dict[tuple[str, str], list[int]] = {}
        files, functions = data["files"], data["functions"]
        bases = [name.rpartition("/")[2] for name in files]
        bare = [name.rpartition(".")[2] for name in functions]
        for at, row in enumerate(data["messages"]):
            self._by_place.setdefault((bases[row[3]], bare[row[4]]), []).append(at)
        seen: dict[str, int] = {}
        for row in data["messages"]:
            for word in _split(row[0]):
                seen[word] = seen.get(word, 0) + 1
        for at, row in enumerate(data["messages"]):
            if row[0]:
                rarest = min(_split(row[0]), key=seen.__getitem__)
                self._by_word.setdefault(rarest, []).append(at)
        self._file, self._function = files, functions

    def row(self, at: int) -> Row:
        """A message by its number."""
        hashes, number, raised, file, function, first, last, *sites = self._data["messages"][at]
        names = self._data["raised"][raised], self._file[file], self._function[function]
        return Row(self.framework, tuple(_split(hashes)), number, *names, first, last, tuple(sites))

    def with_words(self, said: Sequence[str]) -> Iterator[Row]:
        """The messages whose words occur in a text, in order."""
        for word in dict.fromkeys(said):
            for at in self._by_word.get(word, ()):
                row = self.row(at)
                if _in_order(row.hashes, said):
                    yield row

    def at(self, frame: Frame) -> Iterator[Row]:
        """The messages in the function of a frame."""
        key = frame.file.rpartition("/")[2], frame.function.rpartition(".")[2]
        for at in self._by_place.get(key, ()):
            if _same_file((row := self.row(at)).file, frame.file):
                yield row


def _split(hashes: str) -> list[str]:
    return [hashes[at : at + DIGITS] for at in range(0, len(hashes), DIGITS)]


def _in_order(wanted: Iterable[str], said: Iterable[str]) -> bool:
    left = iter(said)
    return all(word in left for word in wanted)


def _same_file(ours: str, theirs: str) -> bool:
    """Whether a path in a log is a file of a framework: two folders match, or all existing ones."""
    mine, other = ours.split("/"), theirs.split("/")
    depth = min(len(mine), len(other), 3)
    return mine[-depth:] == other[-depth:]


@cache
def frameworks() -> tuple[str, ...]:
    """The frameworks with a table of messages."""
    return tuple(name for name in schemas.read("releases") if schemas.exists(f"{name}/messages"))


@cache
def table(framework: str) -> Table:
    """The table of a framework, read once."""
    return Table(framework)


@cache
def _owners(framework: str) -> Mapping[str, tuple[str, ...]]:
    """Statement → the rules for it."""
    found: dict[str, tuple[str, ...]] = {}
    rules = schemas.read(f"{framework}/evidence")["rules"]
    declared = {site for sites, _ in rules.values() for site in sites}
    for rule, (sites, mentioned) in rules.items():
        for site in (*sites, *(site for site in mentioned if site not in declared)):
            found[site] = (*found.get(site, ()), rule)
    reported = schemas.read(f"{framework}/decisions").get("reported", {})
    for rule, sites in reported.items():
        for site in sites:
            found[site] = (*found.get(site, ()), rule)
    return found


def statement_of(failure: Failure) -> Statement | None:
    """The statement behind a failure; None if no table has it, or several have."""
    said = [
        hashed(word)
        for word in words(failure.message.partition("\n")[0] if len(failure.message) > 600 else failure.message)
    ]
    best: list[tuple[float, Row]] = []
    for framework in frameworks():
        best += (found for found in _scored(table(framework), failure, said) if _may_raise(found[1], failure))
    if not best:
        return _by_line(failure)
    top = max(score for score, _ in best)
    rows = [row for score, row in best if score == top]
    return _stated(rows, failure)


def _may_raise(row: Row, failure: Failure) -> bool:
    """Whether the frames of a failure, if it has any, lead into the folder of a statement's framework."""
    folder = row.file.partition("/")[0]
    return not failure.frames or any(folder in frame.file.split("/") for frame in failure.frames)


def _by_line(failure: Failure) -> Statement | None:
    """The only statement on the line of the last frame in any release, for an exception without words."""
    last = failure.frames[-1] if failure.frames and not failure.message else None
    shown = {hashed(word) for word in words(last.source)} if last is not None else set()
    if last is None or not shown or not last.source.startswith(("assert", "raise")):
        return None
    for framework in frameworks():
        sites = statements_on_line(framework, last.file, last.line)
        rows = [row for row in table(framework).at(last) if sites.intersection(row.sites)] if len(sites) == 1 else []
        if fitting := [row for row in rows if shown.intersection(row.hashes)]:
            return _stated(fitting, failure)
    return None


def _scored(found: Table, failure: Failure, said: Sequence[str]) -> Iterator[tuple[float, Row]]:
    last = failure.frames[-1] if failure.frames else None
    if last is not None:
        source = [hashed(word) for word in words(last.source)]
        for row in found.at(last):
            fits = row.raised == CONDITION and not failure.message and _in_order(row.hashes, source)
            if fits or (row.raised != CONDITION and said and _in_order(row.hashes, said)):
                yield 100 + row.number + len(row.hashes), row
    if len(said) >= FEW:
        for row in found.with_words(said):
            if row.raised != CONDITION and _tells(row, failure, said):
                yield row.number + _on_the_way(row, failure), row


def _tells(row: Row, failure: Failure, said: Sequence[str]) -> bool:
    """Whether the words alone identify the statement: there are many, they cover most of the text, and the exception is
    the same."""
    if row.raised not in ("", "error") and failure.kind and row.raised != failure.kind:
        return False
    if failure.kind in PYTHONS_OWN:
        return False
    on_the_way = _on_the_way(row, failure)
    few = FEW if on_the_way or not failure.frames else ELSEWHERE
    enough = len(row.hashes) >= FEW and row.number >= few + (not failure.kind)
    share = 0.4 if on_the_way else 0.6 if failure.frames else ALONE
    return enough and row.number >= share * len(said[:40]) and (row.number <= KEPT or len(said) >= 0.7 * row.number)


def _on_the_way(row: Row, failure: Failure) -> float:
    return 20.0 * any(_same_file(row.file, frame.file) for frame in failure.frames)


def _stated(rows: Sequence[Row], failure: Failure) -> Statement | None:
    """The statement of equally good rows: the same text may be in several files, and may belong to one rule."""
    lines = {place for frame in failure.frames[-1:] for place in _at_line(frame)}
    placed = [row._replace(sites=tuple(lines.intersection(row.sites))) for row in rows if lines.intersection(row.sites)]
    placed = placed or list(rows)
    owned = {rule: row for row in placed for site in row.sites for rule in _owners(row.framework).get(site, ())}
    rules = tuple(sorted(owned, key=lambda rule: rule.partition("/")[0] not in (rule, owned[rule].framework)))
    one = max(placed, key=lambda row: (bool(row.sites), row.last))
    releases = table(one.framework).releases
    first = min(row.first for row in placed if row.framework == one.framework)
    last = max(row.last for row in placed if row.framework == one.framework)
    places = {row.place for row in placed}
    functions = {row.function.rpartition(".")[2] for row in placed}
    if len(functions) > FEW and not rules:
        return None
    sites = tuple(dict.fromkeys(site for row in placed for site in row.sites))
    return Statement(one.framework, one.place, rules, (releases[first], releases[last]), sites, len(places) == 1)


@cache
def _lines(framework: str) -> Mapping[tuple[str, int], tuple[tuple[str, str], ...]]:
    """Name of a file and line → the statements there in any release, each with its file."""
    data = schemas.read(f"{framework}/evidence")
    found: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for id, (_, runs, *_) in data["sites"].items():
        for file, _, _, _, lines in runs:
            path = data["files"][file]
            for line in lines:
                found.setdefault((path.rpartition("/")[2], line), []).append((path, id))
    return {key: tuple(value) for key, value in found.items()}


def statements_on_line(framework: str, path: str, line: int) -> frozenset[str]:
    """The statements of the evidence on a line of a file in some release."""
    there = _lines(framework).get((path.rpartition("/")[2], line), ())
    return frozenset(id for file, id in there if _same_file(file, path))


def _at_line(frame: Frame) -> Iterator[str]:
    for framework in frameworks():
        yield from statements_on_line(framework, frame.file, frame.line)
