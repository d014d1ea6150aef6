"""`printf -v NAME FORMAT …`: a variable gets a text, where format and arguments are known."""

from __future__ import annotations

import re

from preflight.loaders.document import Piece
from preflight.loaders.shell.expand import Expander
from preflight.loaders.shell.state import Variable
from preflight.loaders.shell.substitutions import words_of
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.word_splitting import text_of
from preflight.source.pattern import lazy_pattern

SETS = lazy_pattern(r"^printf\s+-v\s")
_PLAIN = lazy_pattern(r"(?:[^%\\]|%s)*")


def print_to_variable(expander: Expander, tree: Tree, node: Node) -> None:
    """The variable is what is printed; unknown where that is more than texts put in place of %s."""
    texts = [text_of(field.pieces) for field in words_of(expander, tree, node)]
    name = texts[2] if len(texts) > 2 else None
    if name is None or not re.fullmatch(r"[A-Za-z_]\w*", name):
        return
    form, given = texts[3] if len(texts) > 3 else None, [text for text in texts[4:] if text is not None]
    made = None
    if form is not None and len(given) == len(texts) - 4 == form.count("%s") and _PLAIN.fullmatch(form):
        made = "".join(a + b for a, b in zip(form.split("%s"), [*given, ""], strict=True))
    place = tree.span(node)
    expander.state.put(name, Variable(((Piece(made, place, exact=False, because=f"${name}"),),), False, place))
