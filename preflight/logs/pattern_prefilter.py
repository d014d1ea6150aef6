"""Which patterns can match a text: each pattern has parts of four letters of which a matching text contains one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from preflight.source.record import NamedTuple

LETTERS = 4
"""The length of a part."""
QUANTIFIER = re.compile(r"[*?+]|\{\d*(?:,\d*)?\}")
OPTIONAL = re.compile(r"[*?]|\{0?,")
CLASSES = "dDwWsSbBAZ0123456789"
_COMMON = frozenset("etaoinshrdlucm ")
_FREQUENT = " error Error ERROR failed with exception Exception code from worker required requested waiting for not "
"""Words of many lines of a log."""


class Anchors(NamedTuple):
    """Part → the numbers of the patterns that it indicates. always: the patterns that have no such parts."""

    of: Mapping[str, tuple[int, ...]]
    always: tuple[int, ...]

    def candidates(self, text: str) -> list[int]:
        """The numbers of the patterns that can match a text, in order."""
        found = set(self.always)
        for part in {text[at : at + LETTERS] for at in range(len(text) - LETTERS + 1)}.intersection(self.of):
            found.update(self.of[part])
        return sorted(found)


def anchors(patterns: Sequence[str]) -> Anchors:
    """The parts of patterns."""
    of: dict[str, list[int]] = {}
    always = []
    for at, pattern in enumerate(patterns):
        parts = parts_of(pattern)
        if parts is None:
            always.append(at)
            continue
        for part in parts:
            of.setdefault(part, []).append(at)
    return Anchors({part: tuple(numbers) for part, numbers in of.items()}, tuple(always))


@cache
def parts_of(pattern: str) -> frozenset[str] | None:
    """Parts of which every text that matches a pattern contains one; None if there are none."""
    found = set()
    for branch in branches(pattern):
        parts = _of_branch(branch)
        if parts is None:
            return None
        found |= parts
    return frozenset(found)


def branches(pattern: str) -> Iterator[str]:
    """The alternatives of a pattern."""
    depth, start = 0, 0
    for at, token in _tokens(pattern):
        depth += token.startswith("(") - (token == ")")
        if token == "|" and not depth:
            yield pattern[start:at]
            start = at + 1
    yield pattern[start:]


def _tokens(pattern: str) -> Iterator[tuple[int, str]]:
    """The elements of a pattern: a letter, an escape, a class of letters, and the parts of groups."""
    at = 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "\\":
            end = at + 2
        elif pattern[at] == "[":
            end = at + 2 + (pattern[at + 1] == "^")
            while pattern[end] != "]":
                end += 1 + (pattern[end] == "\\")
            end += 1
        yield at, pattern[at:end]
        at = end


def _of_branch(branch: str) -> set[str] | None:
    """The rarest part of the letters of a branch, otherwise the parts of a group that must match."""
    runs, groups = _runs(branch)
    parts = [run[at : at + LETTERS] for run in runs for at in range(len(run) - LETTERS + 1)]
    if parts:
        return {min(parts, key=_commonness)}
    known = (parts_of(group) for group in groups)
    fewest = min((parts for parts in known if parts), key=len, default=None)
    return set(fewest) if fewest is not None else None


def _commonness(part: str) -> tuple[int, str]:
    return sum(letter in _COMMON for letter in part) + LETTERS * (part in _FREQUENT), part


def _runs(branch: str) -> tuple[list[str], list[str]]:
    """The letters that follow each other in every match of a branch, and its groups that must match."""
    runs: list[str] = []
    groups: list[str] = []
    run, skip = "", 0
    for at, token in _tokens(branch):
        if at < skip:
            continue
        quantified = QUANTIFIER.match(branch, at + len(token))
        skip = quantified.end() if quantified is not None else 0
        if token.startswith("("):
            end = _group_end(branch, at)
            inner = branch[at + 1 : end - 1]
            if not OPTIONAL.match(branch, end) and inner.startswith("?:"):
                groups.append(inner[2:])
            elif not inner.startswith("?"):
                groups.append(inner)
            quantified = QUANTIFIER.match(branch, end)
            skip, letter = quantified.end() if quantified is not None else end, ""
        elif token[0] == "\\":
            letter = "" if token[1] in CLASSES else token[1]
        else:
            letter = "" if token[0] in "[.^$*?+{}" else token
            if token in "^$":
                continue
        run = run + letter if letter and quantified is None else _closed(runs, run)
    _closed(runs, run)
    return runs, groups


def _closed(runs: list[str], run: str) -> str:
    runs.append(run)
    return ""


def _group_end(branch: str, start: int) -> int:
    depth = 0
    for at, token in _tokens(branch):
        if at >= start:
            depth += (token == "(") - (token == ")")
            if not depth:
                return at + 1
    return len(branch)
