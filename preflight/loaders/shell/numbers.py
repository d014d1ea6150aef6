"""Arithmetic in scripts: the text between (( and )) with the values of the variables in it."""

from __future__ import annotations

import re

from preflight.document import Piece
from preflight.loaders.shell.arithmetic import NotKnown, evaluate
from preflight.loaders.shell.fields import text_of, why
from preflight.loaders.shell.forms import EXPANSIONS, QUOTES
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.walking import Expands
from preflight.source import Span

MAX_DEPTH = 40


def arithmetic(expander: Expands, tree: Tree, node: Node, span: Span) -> Piece:
    """$(( … )), (( … )) or the parts of them: a number, or unknown."""
    try:
        return Piece(str(evaluate(_plain(expander, tree, node), lambda name: number(expander, name, span))), span, exact=False)
    except NotKnown as cause:
        return Piece(None, span, exact=False, because=str(cause))


def _plain(expander: Expands, tree: Tree, node: Node) -> str:
    """The expression's text with the expansions inside it replaced by their values. Raises NotKnown."""
    span = tree.span(node)
    parts, at = [], span.start
    stack = list(reversed(node.named_children))
    while stack:
        child = stack.pop()
        if child.type not in EXPANSIONS and child.type not in QUOTES:
            stack += reversed(child.named_children)
            continue
        place, value = tree.span(child), expander.value(tree, child)
        if (text := text_of(value)) is None:
            raise NotKnown(why(value))
        parts += [tree.source.text[at : place.start], f" {text or 0} "]
        at = place.end
    whole = "".join([*parts, tree.source.text[at : span.end]])
    return whole[3:-2] if whole.startswith("$((") else whole[2:-2] if whole.startswith(("((", "$[")) and whole.endswith("))") else whole


def number(expander: Expands, name: str, span: Span) -> int:
    """A variable as arithmetic reads it. Raises NotKnown."""
    variable = expander.state.get(name)
    value = variable.scalar if variable is not None else expander.unset(name, span)
    if (text := text_of(value)) is None:
        raise NotKnown(why(value) or f"${name}")
    if not text.strip():
        return 0
    if not re.fullmatch(r"\s*[-+]?\w{1,20}\s*", text):
        raise NotKnown(f"${name}")
    expander.depth += 1
    try:
        if expander.depth > MAX_DEPTH:
            raise NotKnown(f"${name}")
        return evaluate(text, lambda inner: number(expander, inner, span))
    finally:
        expander.depth -= 1
