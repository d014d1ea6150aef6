"""What a script says without its comments and blanks, so that a limit on its length cannot be reached by padding."""

from __future__ import annotations

import re

from preflight.loaders.document import MARK
from preflight.source.pattern import lazy_pattern

_TOKEN = lazy_pattern(
    r"(?P<comment>(?<![^\s;&|()])#[^\n]*(?:\n[ \t]*(?:#[^\n]*)?){0,9999})"
    r"|(?P<escape>\\.)|(?P<sum>\(\()|(?P<ansi>\$')|(?P<single>')|(?P<double>\")"
    r"|<<<|<<(?P<tabs>-?)[ \t]*(?P<word>'[^'\n]*'|\"[^\"\n]*\"|\\?[\w.+-]+)",
    re.DOTALL,
)
_DOUBLE, _ANSI = lazy_pattern(r"\\.|\"", re.DOTALL), lazy_pattern(r"\\.|'", re.DOTALL)
_BLANKS = lazy_pattern(r"\s\s+")
_LONGEST_SUM = 200
"""Characters of arithmetic, in which `<<` is no here-document and `#` no comment."""
_COSTLY = 50
"""A here-document in tokens: the pattern of its end has to be compiled."""


def without_padding(text: str, most: int) -> str | None:
    """A text of the same length with blanks in place of comments; None where more than so many characters are left.

    A run of blanks counts as one. Comments that speak to preflight stay where there is room for them. Where a quotation or
    a here-document does not end nothing behind it is taken for a comment.
    """
    for keep in (MARK, None) if MARK in text else (None,):
        if (bare := _without_comments(text, most, keep)) is not None and len(_BLANKS.sub(" ", bare)) <= most:
            return bare
    return None


def _without_comments(text: str, most: int, keep: str | None) -> str | None:
    """keep: what a comment has in it that stays."""
    parts, done, tokens = [], 0, 0
    at: int | None = 0
    while at is not None and tokens <= most and (found := _TOKEN.search(text, at)) is not None:
        if found.lastgroup == "comment":
            parts += [text[done : found.start()], _blank(found[0], keep)]
            at = done = found.end()
        else:
            tokens += _COSTLY if found["word"] else 1
            at = _end(text, found)
    return "".join([*parts, text[done:]]) if tokens <= most else None


def _blank(comments: str, keep: str | None) -> str:
    """Blanks, and the newline that ends the last of some lines of comments."""
    if keep is not None and keep in comments:
        return "\n".join(line if keep in line else " " * len(line) for line in comments.split("\n"))
    head, newline, tail = comments.rpartition("\n")
    return " " * len(head) + newline + " " * len(tail)


def _end(text: str, begun: re.Match[str]) -> int | None:
    """Where what has begun ends, None where it does not."""
    kind, at = begun.lastgroup, begun.end()
    if kind == "single":
        return text.find("'", at) + 1 or None
    if kind in ("double", "ansi"):
        pattern, closing = (_DOUBLE, '"') if kind == "double" else (_ANSI, "'")
        return next((found.end() for found in pattern.finditer(text, at) if found[0] == closing), None)
    if kind == "sum":
        return text.find("))", at, at + _LONGEST_SUM) + 2 if "))" in text[at : at + _LONGEST_SUM] else at
    if kind == "word":
        word = begun["word"].strip("'\"\\")
        last = re.compile("\n" + "\t*" * bool(begun["tabs"]) + re.escape(word) + r"(?=\n|\Z)").search(text, at)
        return last.end() if last else None
    return at
