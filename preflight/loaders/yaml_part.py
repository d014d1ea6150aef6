"""One of several YAML documents in a file, in its place."""

from __future__ import annotations

from preflight.loaders.document import Entry, Node
from preflight.loaders.yaml import load_yaml
from preflight.source.text import InputError, Source, Span


def tree_at(source: Source, start: int, end: int) -> Node | None:
    """The tree of a stretch of a file; None where nothing stands there.
    Raises InputError with the place in the file."""
    if not start and end == len(source.text):
        return load_yaml(source).tree
    try:
        tree = load_yaml(Source(source.text[start:end], source.name)).tree
    except InputError as error:
        line, column = source.position(start)
        after = error.line == 1 and column - 1
        raise InputError(
            error.message, error.path, error.line and error.line + line - 1, error.column and error.column + after
        ) from None
    return _moved(tree, source, start, {}) if tree is not None else None


def _moved(node: Node, source: Source, by: int, done: dict[int, Node]) -> Node:
    """A node with every place in the file; what an anchor shares stays shared. The loader bounds its depth."""
    there = done.get(id(node))
    if there is None:
        span, value = Span(source, node.span.start + by, node.span.end + by), node.value
        if node.kind == "sequence":
            value = tuple(_moved(item, source, by, done) for item in node.items)
        elif node.kind == "mapping":
            value = tuple(
                Entry(_moved(e.key, source, by, done), _moved(e.value, source, by, done), e.shadowed, e.merged)
                for e in node.entries
            )
        there = done[id(node)] = node._replace(value=value, span=span)
    return there
