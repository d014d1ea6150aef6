"""Here-documents, and the commands that read variables."""

from __future__ import annotations

import re

from preflight.loaders.document import Piece
from preflight.loaders.shell.assignments import forget
from preflight.loaders.shell.expand import Expander
from preflight.loaders.shell.state import Variable
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.word_splitting import Value, merged
from preflight.source.text import Span


def read(expander: Expander, tree: Tree, node: Node, document: Node | None) -> None:
    """`read`, `mapfile` and kin: unknown values, but for the text of a here-document."""
    names = [
        child
        for child in node.named_children
        if child.type == "word" and re.fullmatch(r"[A-Za-z_]\w*", tree.text(child))
    ]
    body = (
        next((c for c in document.named_children if c.type == "heredoc_body"), None) if document is not None else None
    )
    for name in names:
        forget(expander, tree, name)
    if names and body is not None and re.search(r"-\w*d", tree.text(node)):
        expander.state.put(
            tree.text(names[-1]), Variable((heredoc(expander, tree, document, body),), False, tree.span(names[-1]))
        )


def heredoc(expander: Expander, tree: Tree, document: Node, body: Node) -> Value:
    """The text of a here-document."""
    start = next((tree.text(c) for c in document.named_children if c.type == "heredoc_start"), "")
    span = Span(tree.source, body.start_byte, body.end_byte)
    if start[:1] in "'\"\\":
        return (Piece(span.text, span),)
    return merged([bit.piece for bit in expander.document(tree, span, body)])
