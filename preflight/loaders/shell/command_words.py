"""The words of a command, its here-documents, and the few command substitutions with known output."""

from __future__ import annotations

import re

from preflight.loaders.document import Piece
from preflight.loaders.shell.assignments import forget, words_at
from preflight.loaders.shell.bash_parser import Node, Tree
from preflight.loaders.shell.expansion import Expander
from preflight.loaders.shell.state import Variable
from preflight.loaders.shell.word_splitting import Field, Value, merged, text_of
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Span


def read(expander: Expander, tree: Tree, node: Node, document: Node | None) -> None:
    """`read`, `mapfile` and similar commands: unknown values, except for the text of a here-document."""
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
    return merged(expander.document(tree, span, body))


_NO_WORDS = frozenset(
    ["variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect", "comment", "command_name"]
)
_WHOLE = lazy_pattern(r"-?\d{1,9}")
MOST_LINES = 1000
"""Maximum output of `seq`: more is not a list of options."""


def words_of(expander: Expander, tree: Tree, node: Node) -> list[Field]:
    """The words of a command: its name and its arguments."""
    parts = []
    for child in node.children:
        if child.type == "command_name" and child.named_children:
            parts.append(child.named_children[0])
        elif child.is_named and child.type not in _NO_WORDS:
            parts.append(child)
    found = [field for part in parts for field in words_at(expander, tree, part)]
    expander.spend(len(found))
    return found


def substitute(expander: Expander, tree: Tree, node: Node) -> Value | None:
    """The output of $(echo …), $(expr …), $(cat <<EOF …) and a comment in backticks, otherwise None."""
    inner, place = node.named_children, tree.span(node)
    if len(inner) == 1 and inner[0].type == "redirected_statement":
        return _cat(expander, tree, inner[0])
    if len(inner) != 1 or inner[0].type != "command":
        return None
    words = words_of(expander, tree, inner[0])
    if (
        words
        and text_of(words[0].pieces) == "echo"
        and not str([text_of(f.pieces) for f in words[1:2]]).startswith("['-")
    ):
        return _echo(words[1:], place)
    text = _computed([text_of(field.pieces) for field in words])
    return None if text is None else (Piece(text, place, exact=False),)


def _echo(words: list[Field], place: Span) -> Value | None:
    """The words with blanks between them, each at its place; None if one of them is unknown."""
    pieces: list[Piece] = []
    for field in words:
        if text_of(field.pieces) is None:
            return None
        pieces += [Piece(" ", place, exact=False), *field.pieces] if pieces else field.pieces
    return tuple(pieces) or (Piece("", place, exact=False),)


def _computed(texts: list[str | None]) -> str | None:
    """The output of a command whose words are known."""
    if texts == ["#"]:
        return ""
    if not texts or any(text is None for text in texts):
        return None
    if texts[0] == "seq":
        return _seq([str(text) for text in texts[1:]])
    if texts[0] == "expr":
        from preflight.loaders.shell.expr_command import expr

        return expr([str(text) for text in texts[1:]])
    return None


def _seq(texts: list[str]) -> str | None:
    """The lines of `seq [FIRST [STEP]] LAST` in integers."""
    if not 1 <= len(texts) <= 3 or not all(_WHOLE.fullmatch(text) for text in texts):
        return None
    numbers = [int(text) for text in texts]
    first, step = numbers[0] if len(numbers) > 1 else 1, numbers[1] if len(numbers) > 2 else 1
    lines = range(first, numbers[-1] + (1 if step > 0 else -1), step) if step else ()
    return "\n".join(map(str, lines)) if 0 < len(lines) <= MOST_LINES else None


def _cat(expander: Expander, tree: Tree, node: Node) -> Value | None:
    """The text of `cat <<EOF`."""
    command, document = node.child_by_field_name("body"), node.child_by_field_name("redirect")
    if (
        command is None
        or tree.text(command).strip() != "cat"
        or document is None
        or document.type != "heredoc_redirect"
    ):
        return None
    body = next((child for child in document.named_children if child.type == "heredoc_body"), None)
    pieces = list(heredoc(expander, tree, document, body)) if body is not None else []
    if body is None or text_of(pieces) is None:
        return None
    while pieces and not (text := (pieces[-1].text or "").rstrip("\n")):
        pieces.pop()
    return (*pieces[:-1], pieces[-1].cut(0, len(text))) if pieces else (Piece("", tree.span(node), exact=False),)
