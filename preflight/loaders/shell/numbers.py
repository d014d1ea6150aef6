"""Arithmetic in scripts: the text between (( and )) with the values of the variables in it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from preflight.loaders.document import Piece
from preflight.loaders.shell.arithmetic import compute, evaluate
from preflight.loaders.shell.arithmetic_tokens import NotKnown, names_set
from preflight.loaders.shell.expansion_forms import EXPANSIONS, QUOTES
from preflight.loaders.shell.resolver_interface import Expands
from preflight.loaders.shell.state import Variable
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.word_splitting import Field, text_of, why
from preflight.source.text import Span

MAX_DEPTH = 40


def arithmetic(expander: Expands, tree: Tree, node: Node, span: Span, *, once: bool = False) -> Piece:
    """$(( … )), (( … )) or the parts of them: a number, or unknown.

    once: a statement that is followed once, so that what it sets is kept. An expansion may be read more than once: what
    it sets is not known from then on.
    """
    try:
        return _computed(expander, _plain(expander, tree, node), span, once=once)
    except NotKnown as cause:
        _forget(expander, names_set(tree.text(node)), span)
        return Piece(None, span, exact=False, because=str(cause))


def let(expander: Expands, words: Iterable[Field]) -> None:
    """let X=1 "Y = X * 2": every word is an expression."""
    for pieces in (word.pieces for word in words):
        text, span = text_of(pieces), pieces[0].span
        try:
            if text is None:
                raise NotKnown(why(pieces))
            _computed(expander, text, span, once=True)
        except NotKnown:
            _forget(expander, names_set("".join(piece.text or "$" for piece in pieces)), span)


def _computed(expander: Expands, text: str, span: Span, *, once: bool) -> Piece:
    """The value of an expression, after what it sets. Raises NotKnown."""
    value, sets = compute(text, lambda name: number(expander, name, span))
    for name, new in sets.items():
        old = expander.state.get(name)
        piece = Piece(str(new) if once else None, span, exact=False, because="" if once else f"${name}")
        variable = old if old is not None else Variable((), False, span)
        expander.state.put(name, variable._replace(items=((piece,), *variable.items[1:]), place=span, others=()))
    return Piece(str(value), span, exact=False)


def _forget(expander: Expands, names: Iterable[str], span: Span) -> None:
    """Names that are set to what is not known."""
    for name in names:
        unknown = Piece(None, span, exact=False, because=f"${name}")
        expander.state.put(name, Variable(((unknown,),), False, span))


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
        parts += [tree.source.text[at : place.start], text]
        at = place.end
    whole = "".join([*parts, tree.source.text[at : span.end]])
    ends = {"$((": (3, 2), "((": (2, 2), "$[": (2, 1)}
    before, after = next((cut for start, cut in ends.items() if whole.startswith(start)), (0, 0))
    return whole[before : len(whole) - after]


def number(expander: Expands, name: str, span: Span) -> int:
    """A variable as arithmetic reads it. Raises NotKnown."""
    variable = expander.state.get(name)
    value = variable.scalar if variable is not None else expander.unset(name, span)
    if (text := text_of(value)) is None:
        raise NotKnown(why(value) or f"${name}")
    if not text.strip():
        return 0
    if not re.fullmatch(r"\s*[-+]?\w{1,20}\s*", text, re.ASCII):
        raise NotKnown(f"${name}")
    expander.depth += 1
    try:
        if expander.depth > MAX_DEPTH:
            raise NotKnown(f"${name}")
        return evaluate(text, lambda inner: number(expander, inner, span))
    finally:
        expander.depth -= 1
