"""Branches of a script: if and case, one way where the outcome is known, else every way."""

from __future__ import annotations

from preflight.loaders.document import Piece
from preflight.loaders.shell import conditions
from preflight.loaders.shell.parameters import glob
from preflight.loaders.shell.state import Variable
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.walker_interface import Follows
from preflight.source.pattern import lazy_pattern

_ARGUMENT = lazy_pattern(r'"?\$(?:[1-9]|\{[1-9]\})"?')


def follow_if(follower: Follows, tree: Tree, node: Node) -> None:
    """An if with its elif and else."""
    possible: list[list[Node]] = []
    because, texts = "", ""
    for tests, body in _branches(node):
        value: bool | None = True
        for test in tests:
            value = follower.status(tree, test, testing=True)
        if value is False:
            continue
        if value and (guarded := _guarded(tree, tests, body)):
            for name in guarded:
                unknown = Piece(None, tree.span(node), exact=False, because=f"${name}")
                follower.state.put(name, Variable(((unknown,),), False, tree.span(node)))
            continue
        possible.append(body)
        if value:
            break
        texts += " ".join(tree.text(test) for test in tests)
        because = because or f"the condition {texts[:60]}"
    else:
        possible.append([])
    if len(possible) == 1:
        follower.block(tree, possible[0])
    else:
        follower.either(tree, possible, because, conditions.asked_for(texts))


def _guarded(tree: Tree, tests: list[Node], body: list[Node]) -> frozenset[str]:
    """The variables without which a script ends with a failure: whoever starts it sets them."""
    last = tree.text(body[-1]).split() if body else []
    ends = last[:1] == ["exit"] and last[1:] != ["0"]
    return conditions.asked_for(" ".join(tree.text(test) for test in tests)) if ends else frozenset()


def follow_case(follower: Follows, tree: Tree, node: Node) -> None:
    """A case."""
    subject = node.child_by_field_name("value")
    text = follower.expander.text(tree, subject) if subject is not None else None
    possible: list[list[Node]] = []
    by_default = False
    for item in (child for child in node.named_children if child.type == "case_item"):
        patterns = item.children_by_field_name("value")
        values = {child.id for child in patterns}
        body = [child for child in item.named_children if child.id not in values]
        matched = [_matches(follower, tree, text, pattern) for pattern in patterns]
        if any(m is True for m in matched):
            possible.append(body)
            by_default = text is None
            break
        if any(m is None for m in matched):
            possible.append(body)
    else:
        possible.append([])
    if len(possible) == 1:
        follower.block(tree, possible[0])
    else:
        because = f"case {tree.text(subject)}" if subject is not None else "case"
        default = (
            possible[-1] if subject is not None and by_default and _ARGUMENT.fullmatch(tree.text(subject)) else None
        )
        follower.either(tree, possible, because, default=default)


def _matches(follower: Follows, tree: Tree, text: str | None, pattern: Node) -> bool | None:
    wanted = follower.expander.text(tree, pattern)
    if wanted == "*" and tree.text(pattern) == "*":
        return True
    found = glob(wanted) if wanted is not None else None
    return None if text is None or found is None or len(text) > 200 else bool(found.fullmatch(text))


def _branches(node: Node) -> list[tuple[list[Node], list[Node]]]:
    """Tests and body of each branch of an if; no tests for else."""
    found: list[tuple[list[Node], list[Node]]] = []
    tests: list[Node] = []
    body: list[Node] = []
    in_body = False
    for child in node.children:
        if child.type == "then":
            in_body = True
        elif child.type in ("elif_clause", "else_clause"):
            if child.type == "elif_clause":
                found += _branches(child)
            else:
                found.append(([], [c for c in child.named_children]))
        elif child.is_named and child.type != "comment":
            (body if in_body else tests).append(child)
    return [(tests, body), *found]
