"""A quote that nobody closes: bash reads on to the end of the file and runs nothing of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.loaders.shell.syntax import Node, Tree
from preflight.source.pattern import lazy_pattern
from preflight.source.text import InputError

_BEGUN = lazy_pattern(r"#[^\n]*|\\.|\\\Z|'|\"", re.DOTALL)
_IN_QUOTES = lazy_pattern(r"\\.|\"", re.DOTALL)
_QUOTES = ('"', "'")


def refuse_unclosed(tree: Tree) -> None:
    """Raises InputError where a quote is open at the end: the grammar and a plain lexer have to agree, as each alone is
    at times wrong. Between backticks an open quote spoils that command alone."""
    text = tree.source.text
    if not tree.root.has_error or tree.cut or "`" in text:
        return
    opened = min((node.start_byte for node in _open(tree.root)), default=None)
    if opened is not None and _never_closed(text):
        place = tree.source.position(opened)
        raise InputError(
            "is no shell script: a quote is opened and never closed, about here",
            tree.source.name,
            place.line,
            place.column,
        )


def _open(root: Node) -> Iterator[Node]:
    """Quotes that the grammar could not make a string of."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_missing and node.type in _QUOTES:
            yield node.parent or node
        if node.type == "ERROR":
            yield from (
                child
                for child in node.children
                if child.type in _QUOTES or (child.type == "string" and child.has_error)
            )
            if node.text[:1] in (b'"', b"'"):
                yield node
        if node.has_error:
            waiting.extend(node.children)


def _never_closed(text: str) -> bool:
    """As a plain lexer has it that knows comments, escapes and quotes, and nothing else."""
    at = 0
    while (begun := _BEGUN.search(text, at)) is not None:
        at = begun.end()
        if begun[0] == "\\":
            return True
        if begun[0] == "'":
            at = text.find("'", at) + 1
        elif begun[0] == '"':
            at = next((found.end() for found in _IN_QUOTES.finditer(text, at) if found[0] == '"'), 0)
        if not at:
            return True
    return False
