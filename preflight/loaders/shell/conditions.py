"""Tests in [ ], [[ ]] and (( )): true, false, or None when that depends on what is not known."""

from __future__ import annotations

import re

from preflight.loaders.shell.expand import Expander
from preflight.loaders.shell.numbers import arithmetic as computed
from preflight.loaders.shell.parameters import glob
from preflight.loaders.shell.syntax import Node, Tree
from preflight.source.pattern import lazy_pattern

_NUMBERS = {"-eq": 0, "-ne": 0, "-lt": 0, "-le": 0, "-gt": 0, "-ge": 0}
_EMPTY = lazy_pattern(
    r"-z\s+\"?\$\{?([A-Za-z_]\w*)(?::?[-+])?\}?\"?"
    r"|\"?\$\{?([A-Za-z_]\w*)(?::?-)?\}?\"?\s*={1,2}\s*\"\"|!\s*-v\s+([A-Za-z_]\w*)"
)
MAX_DEPTH = 40


def test(expander: Expander, tree: Tree, node: Node, depth: int = 0) -> bool | None:
    """The outcome of a test node."""
    kind = node.type
    if depth > MAX_DEPTH:
        return None
    if kind in ("test_command", "parenthesized_expression"):
        if tree.text(node).startswith("(("):
            return arithmetic(expander, tree, node)
        inner = node.named_children
        return test(expander, tree, inner[0], depth + 1) if len(inner) == 1 else None
    if kind == "unary_expression":
        return _unary(expander, tree, node, depth)
    if kind == "binary_expression":
        return _binary(expander, tree, node, depth)
    if kind == "negation_expression":
        value = test(expander, tree, node.named_children[0], depth + 1) if node.named_children else None
        return None if value is None else not value
    text = expander.text(tree, node)
    return bool(text) if text is not None else None


def arithmetic(expander: Expander, tree: Tree, node: Node) -> bool | None:
    """Whether (( … )) is not zero; what it sets is kept."""
    piece = computed(expander, tree, node, tree.span(node), once=True)
    return piece.text != "0" if piece.text is not None else None


def asked_for(text: str) -> frozenset[str]:
    """Names of which a condition asks whether they are empty or not set: [ -z "$X" ]."""
    return frozenset(name for match in _EMPTY.finditer(text) for name in match.groups() if name)


def _unary(expander: Expander, tree: Tree, node: Node, depth: int) -> bool | None:
    operator = node.children[0]
    sign = tree.text(operator).strip()
    operand = node.named_children[-1]
    if sign == "!":
        value = test(expander, tree, operand, depth + 1)
        return None if value is None else not value
    if sign == "-v":
        return True if tree.text(operand).strip("\"'") in expander.state.variables else None
    if sign not in ("-z", "-n"):
        return None
    text = expander.text(tree, operand)
    return None if text is None else (not text) == (sign == "-z")


def _binary(expander: Expander, tree: Tree, node: Node, depth: int) -> bool | None:
    if len(node.children) != 3:
        return None
    left, sign, right = node.children[0], tree.text(node.children[1]).strip(), node.children[2]
    if sign in ("&&", "||", "-a", "-o"):
        one, other = test(expander, tree, left, depth + 1), test(expander, tree, right, depth + 1)
        decisive = sign in ("||", "-o")
        if decisive in (one, other):
            return decisive
        return None if None in (one, other) else not decisive
    if any(side.type.endswith("_expression") for side in (left, right)):
        return None
    a, b = expander.text(tree, left), expander.text(tree, right)
    if a is None or b is None:
        return None
    if sign in _NUMBERS:
        return _compare(a, sign, b)
    if sign in ("=", "==", "!="):
        equal = a == b
        if not equal and re.search(r"[*?\[\]()\\]", b):
            pattern = glob(b) if tree.text(right)[:1] not in "\"'" else None
            if pattern is None:
                return None if tree.text(right)[:1] not in "\"'" else sign == "!="
            if len(a) > 200:
                return None
            equal = bool(pattern.fullmatch(a))
        return equal == (sign != "!=")
    if sign in ("<", ">"):
        return (a < b) == (sign == "<") if a != b else False
    return None


def _compare(a: str, sign: str, b: str) -> bool | None:
    if not (re.fullmatch(r"\s*-?\d{1,18}\s*", a) and re.fullmatch(r"\s*-?\d{1,18}\s*", b)):
        return None
    x, y = int(a), int(b)
    return {"-eq": x == y, "-ne": x != y, "-lt": x < y, "-le": x <= y, "-gt": x > y, "-ge": x >= y}[sign]
