"""Comments of a script, and what a suppression in one covers: the statement below it, whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.document import Comment
from preflight.loaders.shell.syntax import Node, Tree
from preflight.source import Span

_HASH = re.compile(r"(?:(?<=[\s;&|()])|^)#[^\n]*", re.MULTILINE)


def comments(tree: Tree) -> Iterator[Comment]:
    """Every comment, in order. A `#` inside quotes or a word is none."""
    source = tree.source
    for match in _HASH.finditer(source.text):
        node = tree.root.descendant_for_byte_range(match.start(), match.start() + 1)
        if node is None or node.type != "comment" or node.start_byte != match.start():
            continue
        end = match.start() + len(match[0].rstrip("\r"))
        line = source.position(match.start()).line
        begin = source.starts[line - 1]
        alone = not source.text[begin : match.start()].strip()
        covers = _below(tree, node, line) if alone else Span(source, begin, end + 1)
        yield Comment(Span(source, match.start(), end), alone, covers)


def _below(tree: Tree, node: Node, line: int) -> Span:
    """The statement after a comment; the next line only, inside an array."""
    source = tree.source
    following = node.next_named_sibling
    while following is not None and following.type == "comment":
        following = following.next_named_sibling
    start = source.starts[min(line, len(source.starts) - 1)]
    if following is not None and (node.parent is None or node.parent.type != "array"):
        return Span(source, start, max(start, following.end_byte) + 1)
    after = source.starts[line + 1] if line + 1 < len(source.starts) else len(source.text) + 1
    return Span(source, start, after)
