"""Uses of a variable that the script makes only where the variable is set."""

from __future__ import annotations

import re

from preflight.loaders.shell.syntax import Node, Tree, ancestors, parse
from preflight.source.text import InputError, Span

_IF = ("if_statement", "elif_clause", "while_statement")
_EXPANSION = re.compile(r"\$\{(\w+):?\+")


def is_guarded(name: str, span: Span) -> bool:
    """Whether a use stands in a branch of a test of the same variable, behind one in a list, or in ${NAME:+…}."""
    try:
        tree = parse(span.source)
    except (InputError, RecursionError):
        return False
    node = tree.root.descendant_for_byte_range(span.start, max(span.start, span.end - 1))
    mentioned = re.compile(rf"\$\{{?{name}\b|-v[ \t]+\"?{name}\b")
    return node is not None and any(_guards(tree, one, name, mentioned, span.start) for one in ancestors(node))


def _guards(tree: Tree, node: Node, name: str, mentioned: re.Pattern[str], at: int) -> bool:
    if node.type == "expansion":
        match = _EXPANSION.match(tree.text(node))
        return match is not None and match[1] == name and at > node.start_byte
    if node.type == "case_statement":
        subject = node.child_by_field_name("value")
        return subject is not None and subject.end_byte <= at and mentioned.search(tree.text(subject)) is not None
    if node.type == "list":
        first = node.named_children[0]
        return first.end_byte <= at and mentioned.search(tree.text(first)) is not None
    return node.type in _IF and any(
        test.end_byte <= at and mentioned.search(tree.text(test)) is not None for test in _tests(node)
    )


def _tests(node: Node) -> list[Node]:
    """What stands between if, elif or while and the body."""
    found = []
    for child in node.children:
        if child.type in ("then", "do_group"):
            break
        if child.is_named and child.type != "comment":
            found.append(child)
    return found
