"""The words of a command, and the few command substitutions whose output can be known."""

from __future__ import annotations

from preflight.loaders.shell.braces import words_at
from preflight.loaders.shell.expand import Expander
from preflight.loaders.shell.heredocs import heredoc
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.word_splitting import Field, text_of
from preflight.source.pattern import lazy_pattern

_NO_WORDS = frozenset(
    ["variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect", "comment", "command_name"]
)
_WHOLE = lazy_pattern(r"-?\d{1,9}")
MOST_LINES = 1000
"""Of `seq`: more is no list of options."""


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


def substitute(expander: Expander, tree: Tree, node: Node) -> str | None:
    """The output of $(echo …), $(expr …), $(cat <<EOF …) and a comment in backticks, else None."""
    inner = node.named_children
    if len(inner) == 1 and inner[0].type == "redirected_statement":
        return _cat(expander, tree, inner[0])
    if len(inner) != 1 or inner[0].type != "command":
        return None
    words = words_of(expander, tree, inner[0])
    texts = [text_of(field.pieces) for field in words]
    if texts == ["#"]:
        return ""
    if not texts or any(text is None for text in texts):
        return None
    if texts[0] == "echo" and not str(texts[1:2]).startswith("['-"):
        return " ".join(str(text) for text in texts[1:])
    if texts[0] == "seq":
        return _seq([str(text) for text in texts[1:]])
    if texts[0] == "expr":
        from preflight.loaders.shell.expr_command import expr

        return expr([str(text) for text in texts[1:]])
    return None


def _seq(texts: list[str]) -> str | None:
    """The lines of `seq [FIRST [STEP]] LAST` in whole numbers."""
    if not 1 <= len(texts) <= 3 or not all(_WHOLE.fullmatch(text) for text in texts):
        return None
    numbers = [int(text) for text in texts]
    first, step = numbers[0] if len(numbers) > 1 else 1, numbers[1] if len(numbers) > 2 else 1
    lines = range(first, numbers[-1] + (1 if step > 0 else -1), step) if step else ()
    return "\n".join(map(str, lines)) if 0 < len(lines) <= MOST_LINES else None


def _cat(expander: Expander, tree: Tree, node: Node) -> str | None:
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
    text = text_of(heredoc(expander, tree, document, body)) if body is not None else None
    return text.rstrip("\n") if text is not None else None
