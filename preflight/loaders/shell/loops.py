"""Loops of a script: item by item where the items are known, else once, with what the body changes unknown."""

from __future__ import annotations

from preflight.loaders.document import Piece
from preflight.loaders.shell.assignments import forget
from preflight.loaders.shell.braces import words_at
from preflight.loaders.shell.state import Variable
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.walker_interface import Follows
from preflight.loaders.shell.word_splitting import text_of
from preflight.source.pattern import lazy_pattern

MAX_ROUNDS = 16
_OVER_ARGUMENTS = lazy_pattern(r"getopts\b|\$#|\$\{#\}|\$\{?1\b")
"""A condition that asks whether there are arguments left."""


def follow_for(follower: Follows, tree: Tree, node: Node) -> None:
    """for, and select."""
    name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
    if name is None or body is None:
        return
    listed = node.children_by_field_name("value")
    items = [field for child in listed for field in words_at(follower.expander, tree, child)]
    if follower.expander.arguments is None and (not listed or any(_is_arguments(tree.text(child)) for child in listed)):
        _leave_out(follower, tree, body)
        return
    known = listed and len(items) <= MAX_ROUNDS and all(text_of(field.pieces) is not None for field in items)
    if not known or tree.text(node).startswith("select"):
        forget(follower.expander, tree, name)
        _repeat(follower, tree, body)
        return
    for field in items:
        follower.state.put(tree.text(name), Variable((tuple(field.pieces),), False, tree.span(name)))
        follower.statement(tree, body)
        follower.stop.reached("continue")
        if follower.stop.at:
            break
    follower.stop.reached("break")


def follow_while(follower: Follows, tree: Tree, node: Node) -> None:
    """while, until and for (( … ))."""
    body = node.child_by_field_name("body")
    test = next((child for child in node.children_by_field_name("condition") if child.is_named), None)
    if body is None:
        return
    if follower.expander.arguments is None and test is not None and _OVER_ARGUMENTS.search(tree.text(test)):
        _leave_out(follower, tree, body)
        return
    start = node.child_by_field_name("initializer")
    for name in start.named_children[:1] if start is not None else []:
        forget(follower.expander, tree, name)
    value = follower.status(tree, test) if test is not None and node.type == "while_statement" and test.type == "command" else None
    until = tree.text(node).startswith("until")
    if value is not None and tree.text(test).strip() in ("true", "false", ":") and value is until:
        return
    _repeat(follower, tree, body)


def _is_arguments(text: str) -> bool:
    return text.strip('"') in ("$@", "$*", "${@}", "${*}")


def _leave_out(follower: Follows, tree: Tree, body: Node) -> None:
    """A loop over the arguments of the script, which are assumed to be none: what it alone sets is for the caller to say."""
    known = set(follower.state.ever)
    follower.dry += 1
    with follower.state.frame() as changes:
        follower.statement(tree, body)
    follower.state.undo(changes)
    follower.dry -= 1
    follower.stop.at = ""
    follower.state.by_caller |= follower.state.ever - known


def _repeat(follower: Follows, tree: Tree, body: Node) -> None:
    """A body that runs an unknown number of times: what it changes is unknown from its start on."""
    if not follower.dry:
        follower.dry += 1
        with follower.state.frame() as changes:
            follower.statement(tree, body)
        new = follower.state.undo(changes)
        follower.dry -= 1
        follower.stop.at = ""
        for name, variable in new.items():
            before = changes[name]
            if variable is not None and before is not None and variable.items != before.items:
                unknown = Piece(None, variable.place, exact=False, because=f"${name}, which a loop changes")
                follower.state.put(name, before._replace(items=((unknown,),), array=False))
    follower.either(tree, [[body], []], "a loop")
    follower.stop.reached("break", "continue")
