"""Proof that an edited Python program differs from the old one in exactly the literals that were meant to change."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Sequence

from preflight.source.finding import Edit
from preflight.source.refusal import NotProven
from preflight.source.text import Source, Span

Place = tuple[int, int]
"""A line from 1, and a column in bytes, as syntax trees count them."""


def prove_python(old: Source, edits: Sequence[Edit], new: Source) -> None:
    """Raises NotProven unless the programs are the same but for the literals of the edits, and so are their texts."""
    wanted: dict[tuple[Place, Place], object] = {}
    for edit in edits:
        if edit.action != "set" or edit.span is None or edit.span.source is not old:
            raise NotProven("of a Python program only a literal is edited")
        wanted[_place(edit.span, edit.span.start), _place(edit.span, edit.span.end)] = edit.value
    exchange = _Exchange(wanted)
    try:
        meant, made = exchange.visit(ast.parse(old.text)), ast.parse(new.text)
    except (SyntaxError, ValueError):
        raise NotProven("the edited program cannot be read") from None
    if exchange.done != len(wanted) or ast.dump(meant) != ast.dump(made):
        raise NotProven("the program would change elsewhere")
    if _written(old.text, edits) != new.text:
        raise NotProven("a comment would be lost or changed")


class _Exchange(ast.NodeTransformer):
    """Puts other literals in the place of those at some places."""

    def __init__(self, wanted: dict[tuple[Place, Place], object]) -> None:
        self.wanted, self.done = wanted, 0

    def visit(self, node: ast.AST) -> ast.AST:
        inner = node.operand if isinstance(node, ast.UnaryOp) else node
        if isinstance(inner, ast.Constant) and isinstance(node, ast.expr):
            end = (node.end_lineno or 0, node.end_col_offset or 0)
            place = ((node.lineno, node.col_offset), end)
            if place in self.wanted:
                self.done += 1
                return ast.parse(repr(self.wanted[place]), mode="eval").body
        made: ast.AST = super().visit(node)
        return made


def _place(span: Span, offset: int) -> Place:
    source = span.source
    line = bisect_right(source.starts, offset)
    return line, len(source.text[source.starts[line - 1] : offset].encode("utf-8"))


def _written(text: str, edits: Sequence[Edit]) -> str:
    """The text with each literal written as Python writes it."""
    spans = {(edit.span.start, edit.span.end): repr(edit.value) for edit in edits if edit.span is not None}
    for (start, end), value in sorted(spans.items(), reverse=True):
        text = text[:start] + value + text[end:]
    return text
