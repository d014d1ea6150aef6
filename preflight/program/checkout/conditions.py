"""Conditions in one spelling, so that a check that was only written differently is the same check.

A condition is a set of parts that all have to hold. `if a: if not b` and `if a and not b` have the same parts, `x > 1`
and
`1 < x` are one part, and `args.x`, `self.x` and `getattr(args, "x", None)` are all `x`.
"""

from __future__ import annotations

import ast
import re

OWNERS = frozenset(
    {"args", "self", "config", "cfg", "transformer_config", "model_config", "arg", "parsed_args", "new_args"}
)
"""Names whose attributes are the arguments themselves."""
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}


class _Plain(ast.NodeTransformer):
    """Arguments by their bare names, marked as such."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.value = self.visit(node.value)
        if isinstance(node.value, ast.Name) and node.value.id in OWNERS and not is_argument(node.value):
            return _argument(node.attr, node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            owner, name = node.args[0], node.args[1]
            if (
                isinstance(owner, ast.Name)
                and owner.id in OWNERS
                and isinstance(name, ast.Constant)
                and str(name.value).isidentifier()
            ):
                return _argument(str(name.value), node)
        return self.generic_visit(node)


def _argument(name: str, node: ast.expr) -> ast.Name:
    made = ast.copy_location(ast.Name(name, ast.Load()), node)
    made.argument = True  # type: ignore[attr-defined]
    return made


def is_argument(node: ast.AST) -> bool:
    """Whether a name stands for an argument."""
    return getattr(node, "argument", False)


def plain(tree: ast.Module) -> ast.Module:
    """The tree with arguments by their bare names; it is changed."""
    changed: ast.Module = _Plain().visit(tree)
    return changed


def text(node: ast.AST) -> str:
    """A piece of code on one line."""
    return re.sub(r"\s+", " ", ast.unparse(node)).strip()


def parts(node: ast.expr, holds: bool = True) -> frozenset[str]:
    """The parts of a condition that holds, or that does not."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return parts(node.operand, not holds)
    if isinstance(node, ast.BoolOp):
        if isinstance(node.op, ast.And) == holds:
            return frozenset().union(*(parts(value, holds) for value in node.values))
        return frozenset(
            {"any(" + "; ".join(sorted(" & ".join(sorted(parts(value, holds))) for value in node.values)) + ")"}
        )
    if isinstance(node, ast.Compare):
        return _compared(node, holds)
    return frozenset({text(node) if holds else f"not {text(node)}"})


def _compared(node: ast.Compare, holds: bool) -> frozenset[str]:
    sides = [node.left, *node.comparators]
    pairs = [ast.Compare(left, [op], [right]) for left, op, right in zip(sides, node.ops, sides[1:], strict=False)]
    if len(pairs) > 1:
        return parts(ast.BoolOp(ast.And(), list(pairs)), holds)
    op = type(node.ops[0])
    op = op if holds else _OPPOSITE[op]
    left, right = sides
    if op in _MIRRORED:
        op, left, right = _MIRRORED[op], right, left
    shown = [text(left), text(right)]
    if op in (ast.Eq, ast.NotEq):
        shown.sort()
    sign = ast.unparse(ast.Compare(ast.Name("x", ast.Load()), [op()], [ast.Name("y", ast.Load())]))[1:-1]
    return frozenset({f"{shown[0]}{sign}{shown[1]}"})
