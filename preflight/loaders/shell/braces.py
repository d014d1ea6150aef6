"""Brace expansion of words that are plain text: a{b,c}d, {1..4}, {08..12..2}."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from preflight.loaders.document import Piece
from preflight.loaders.shell.expand import Expander
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.word_splitting import Field, fields
from preflight.source.pattern import lazy_pattern
from preflight.source.text import Span

MOST_WORDS = 128
MAX_TEXT = 2000
_PLAIN = lazy_pattern(r"[^\s\"'$`\\<>|&;()]*")
_RANGE = lazy_pattern(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.(-?\d{1,6}))?")


class TooMany(Exception):
    """A word stands for more words than are followed."""


def words_at(expander: Expander, tree: Tree, node: Node) -> list[Field]:
    """The words that a node stands for."""
    text = tree.text(node)
    inside = text.partition("{")[2].rpartition("}")[0]
    listed = "," in inside or ".." in inside
    if not listed or len(text) > MAX_TEXT or not _PLAIN.fullmatch(text):
        return fields(expander.bits(tree, node))
    span = tree.span(node)
    try:
        found = list(_expanded(text))
    except TooMany:
        return [Field([Piece(None, span, exact=False, because=text[:40])], True)]
    expander.spend(len(found))
    if found == [text]:
        return fields(expander.bits(tree, node))
    return [_field(word, span) for word in found if word]


def _field(word: str, span: Span) -> Field:
    return Field([Piece(word, span, exact=False)])


def _expanded(text: str) -> Iterator[str]:
    """Every word. Raises TooMany."""
    waiting, count = [text], 0
    while waiting:
        word = waiting.pop()
        parts = _first_braces(word)
        if parts is None:
            count += 1
            yield word
        else:
            before, inner, after = parts
            waiting += [f"{before}{one}{after}" for one in reversed(inner)]
        if count + len(waiting) > MOST_WORDS:
            raise TooMany


def _first_braces(word: str) -> tuple[str, list[str], str] | None:
    """What stands before, in and behind the first braces that bash expands."""
    for start in (at for at, sign in enumerate(word) if sign == "{"):
        end, commas = _closing(word, start)
        if end < 0:
            continue
        inner = word[start + 1 : end]
        if commas:
            cuts = [start, *commas, end]
            return word[:start], [word[a + 1 : b] for a, b in pairwise(cuts)], word[end + 1 :]
        if (listed := _range(inner)) is not None:
            return word[:start], listed, word[end + 1 :]
    return None


def _closing(word: str, start: int) -> tuple[int, list[int]]:
    """Where braces are closed, and the commas between that are not in further braces."""
    depth, commas = 0, list[int]()
    for at in range(start, len(word)):
        depth += {"{": 1, "}": -1}.get(word[at], 0)
        if depth == 0:
            return at, commas
        if word[at] == "," and depth == 1:
            commas.append(at)
    return -1, []


def _range(inner: str) -> list[str] | None:
    """The words of 1..4 or a..d. Raises TooMany."""
    match = _RANGE.fullmatch(inner)
    if match is None or match[1].isalpha() != match[2].isalpha():
        return None
    letters = match[1].isalpha()
    first, last = (ord(match[1]), ord(match[2])) if letters else (int(match[1]), int(match[2]))
    step = abs(int(match[3] or 1)) or 1
    if abs(last - first) // step >= MOST_WORDS:
        raise TooMany
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    width = max(len(match[1]), len(match[2])) if _padded(match[1]) or _padded(match[2]) else 0
    return [chr(n) if letters else f"{n:0{width}d}" for n in numbers]


def _padded(number: str) -> bool:
    return len(number.lstrip("-")) > 1 and number.lstrip("-").startswith("0")
