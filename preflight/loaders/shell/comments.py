"""Comments of a script, and what a suppression in one covers: the statement below it, whole."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.loaders.document import Comment
from preflight.loaders.shell.syntax import Node, Tree
from preflight.source.text import Source, Span

# fmt: off
_PLAIN = frozenset(
    ["command", "string", "raw_string", "word", "concatenation", "number", "simple_expansion", "expansion",
        "test_command", "variable_name", "heredoc_body"]
)
# fmt: on


def comments(tree: Tree) -> Iterator[Comment]:
    """Every comment, in order."""
    stack: list[tuple[Node, Node | None, bool]] = [(tree.root, None, False)]
    while stack:
        node, following, in_array = stack.pop()
        if node.type == "comment":
            yield _comment(tree.source, node.start_byte, node.end_byte, None if in_array else following)
            continue
        if node.type in _PLAIN:
            continue
        below: list[tuple[Node, Node | None, bool]] = []
        after: Node | None = None
        for child in reversed(node.children):
            if child.is_named:
                below.append((child, after, node.type == "array"))
                after = child if child.type != "comment" else after
        stack.extend(below)


def _comment(source: Source, start: int, end: int, following: Node | None) -> Comment:
    end = start + len(source.text[start:end].rstrip("\r\n"))
    line = source.position(start).line
    begin = source.starts[line - 1]
    if source.text[begin:start].strip():
        return Comment(Span(source, start, end), False, Span(source, begin, end + 1))
    first = source.starts[min(line, len(source.starts) - 1)]
    if following is not None:
        return Comment(Span(source, start, end), True, Span(source, first, max(first, following.end_byte) + 1))
    last = source.starts[line + 1] if line + 1 < len(source.starts) else len(source.text) + 1
    return Comment(Span(source, start, end), True, Span(source, first, last))
