"""The places of the comments of a YAML file, and the coverage of suppressions in them."""

from __future__ import annotations

import re
from bisect import bisect_right

from preflight.loaders.document import Comment, Node
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Source, Span

_HASH = lazy_pattern(r"(?:(?<=[ \t\r\n])|^)#[^\r\n]*", re.MULTILINE)


def yaml_comments(source: Source, tree: Node | None, begin: int = 0, stop: int | None = None) -> tuple[Comment, ...]:
    """Every comment that begins in a stretch, in order. A `#` inside a scalar does not count: the tree has all scalars
    of the stretch."""
    if source.text.find("#", begin, stop) < 0:
        return ()
    scalars = _scalars(tree)
    starts = [start for start, _ in scalars]
    found = []
    for match in _HASH.finditer(source.text, begin):
        if stop is not None and match.start() >= stop:
            break
        at = bisect_right(starts, match.start()) - 1
        if at >= 0 and match.start() < scalars[at][1]:
            continue
        found.append(_comment(source, match.start(), match.end()))
    return tuple(found)


def _comment(source: Source, start: int, end: int) -> Comment:
    line = source.position(start).line
    begin = source.starts[line - 1]
    alone = not source.text[begin:start].strip()
    first = line + 1 if alone else line
    first = min(first, len(source.starts))
    stop = source.starts[first] if first < len(source.starts) else len(source.text)
    return Comment(Span(source, start, end), alone, Span(source, source.starts[first - 1], stop + 1))


def _scalars(tree: Node | None) -> list[tuple[int, int]]:
    """Start and end of every scalar in the file, including keys, in order."""
    found: set[tuple[int, int]] = set()
    seen: set[int] = set()
    stack = [tree] if tree is not None else []
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.kind == "scalar":
            found.add((node.span.start, node.span.end))
        stack.extend(node.items)
        for entry in node.entries:
            stack += [entry.key, entry.value]
    return sorted(found)
