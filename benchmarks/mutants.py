"""Mutants of rules, one change each.

A declared check: a comparison inverted; an order made strict or not strict if both sides are arguments (with a number,
the number changes instead); a part of an `and` or `or` dropped; a number raised by one; a choice dropped from a list. A
part that conditions use in several places (a name of the rules' module, such as TRAINS) is one place in the source, so
it changes in all of them, also in those of other rules: that is one mutant.

A rule that is a function: the same, in the syntax tree of its module. Not mutated, because no value of them is wrong:
defaults of annotated fields; numbers from 50 on, which are lines of checks upstream, and the places of a finding
(`upstream=`, `key=`, `related=`, `layout=`: the tests against the catalogues check those); the length of quoted text
(`text[:30]`), the similarity of a suggestion (`get_close_matches`), and the size of a cache.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from preflight.lint.constraint import Constraint
from preflight.lint.expressions import Expression, Handle
from preflight.lint.rule import Checkable, Rule, collect
from preflight.report.upstream_check_coverage import parts

TURNED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
SHIFTED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
ASKED = (*TURNED, "in", "startswith", "has", "is none")
TASTE, LINES, BESIDE = ("get_close_matches", "lru_cache"), 50, ("upstream", "key", "related", "layout")
SIGNS = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Mutant(NamedTuple):
    """One change: its kind, its description, the mutated rule, and the place: the changed expression and the number of
    the change in it."""

    kind: str
    text: str
    rule: Checkable
    place: tuple[int, int]


def shown(node: object) -> str:
    """An expression as people read it."""
    if isinstance(node, Handle):
        return node.name if node.view == "effective" else f"{node.name}.{node.view}"
    if not isinstance(node, Expression):
        return repr(node)
    parts = [shown(part) for part in node.parts]
    return f"{node.op}({', '.join(parts)})" if len(parts) != 2 else f"({parts[0]} {node.op} {parts[1]})"


def nodes(tree: object, seen: set[int] | None = None) -> Iterator[Expression]:
    """Every expression of a tree but bare arguments, each once."""
    seen = set() if seen is None else seen
    if isinstance(tree, Expression) and not isinstance(tree, Handle) and id(tree) not in seen:
        seen.add(id(tree))
        yield tree
        for part in tree.parts:
            yield from nodes(part, seen)


def put(tree: object, old: Expression, new: object) -> object:
    """A tree with another expression wherever it has the old one."""
    if tree is old:
        return new
    if not isinstance(tree, Expression) or isinstance(tree, Handle):
        return tree
    parts = [put(part, old, new) for part in tree.parts]
    return tree if all(a is b for a, b in zip(parts, tree.parts, strict=True)) else Expression(tree.op, *parts)


def variants(node: Expression) -> Iterator[tuple[str, str, object]]:
    """An expression with one change in itself, not in its parts' parts: the kind of change, how it reads,
    the expression."""
    op, parts = node.op, node.parts

    def now(kind: str, new: Expression) -> tuple[str, str, object]:
        return kind, f"{shown(node)}  →  {shown(new)}", new

    if op in TURNED:
        yield now("comparison", Expression(TURNED[op], *parts))
    elif op in ASKED:
        yield now("comparison", ~node)
    elif op == "not" and getattr(parts[0], "op", "") not in ASKED:
        yield "comparison", f"{shown(node)}  →  {shown(parts[0])}", parts[0]
    if op in SHIFTED and all(isinstance(part, Expression) for part in parts):
        yield now("boundary", Expression(SHIFTED[op], *parts))
    if op in ("and", "or"):
        for at in range(len(parts)):
            rest = parts[:at] + parts[at + 1 :]
            yield (
                "part",
                f"{shown(node)}  without  {shown(parts[at])}",
                rest[0] if len(rest) == 1 else Expression(op, *rest),
            )
    if op == "in" and len(parts) > 2:
        for at in range(1, len(parts)):
            yield "choice", f"{shown(node)}  without  {parts[at]!r}", Expression("in", *parts[:at], *parts[at + 1 :])
    for at, part in enumerate(parts):
        if type(part) in (int, float) and not (op == "in" and at):
            yield now("number", Expression(op, *parts[:at], part + 1, *parts[at + 1 :]))  # type: ignore[operator]


def of_declared(rule: Constraint) -> Iterator[Mutant]:
    """Mutants of a declared check."""
    for node in nodes(rule.refuse):
        for number, (kind, text, new) in enumerate(variants(node)):
            anew = put(rule.refuse, node, new)
            if isinstance(anew, Expression):
                yield Mutant(kind, text, replace(rule, refuse=anew), (id(node), number))


class _Turn(ast.NodeTransformer):
    """Changes the place with one number; the same walk counts the places."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.at, self.kind, self.line, self.text = wanted, -1, "", 0, ""

    def _here(self, kind: str, node: ast.expr, new: ast.expr) -> bool:
        """Whether it is this place. new: the replacement; for a part, the dropped part."""
        self.at += 1
        if self.at == self.wanted:
            was, now = ast.unparse(node), ast.unparse(new)
            self.kind, self.line, self.text = (
                kind,
                node.lineno,
                f"{was}  without  {now}" if kind == "part" else f"{was}  →  {now}",
            )
        return self.at == self.wanted

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 and (sign := SIGNS.get(type(node.ops[0]))) is not None:
            turned = ast.Compare(node.left, [sign()], node.comparators)
            return turned if self._here("comparison", node, turned) else node
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        for at in range(len(node.values)):
            if self._here("part", node, node.values[at]):
                rest = node.values[:at] + node.values[at + 1 :]
                return rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return node if getattr(node.func, "id", "") in TASTE else self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        return node if node.arg in BESIDE else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        return node if getattr(node.targets[0], "id", "") in BESIDE else self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> ast.AST:
        return node if isinstance(node.upper, ast.Constant) else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) in (int, float) and node.value < LINES:  # type: ignore[operator]
            raised = ast.copy_location(ast.Constant(node.value + 1), node)  # type: ignore[operator]
            return raised if self._here("number", node, raised) else node
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return node


def of_module(module: ModuleType, ids: set[str]) -> Iterator[tuple[str, str, list[Rule]]]:
    """Mutants of the functions of one module: kind, text, and the reloaded rules that contain the line (none if the
    module does not load)."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    for wanted in range(10_000):
        turn = _Turn(wanted)
        tree = ast.fix_missing_locations(turn.visit(ast.parse(source)))
        if not turn.kind:
            return
        anew = ModuleType(module.__name__)
        anew.__dict__.update(__file__=module.__file__, __package__=module.__package__)
        text = f"line {turn.line}: {turn.text}"
        text += f"  in  {source.splitlines()[turn.line - 1].strip()}" if turn.kind == "number" else ""
        try:
            sys.modules[module.__name__] = anew
            exec(compile(tree, str(module.__file__), "exec"), anew.__dict__)
            yield turn.kind, text, [rule for rule in _of(anew, tree, turn.line) if rule.id in ids]
        except Exception:  # everything kills it
            yield turn.kind, text, []
        finally:
            sys.modules[module.__name__] = module


def _of(module: ModuleType, tree: ast.Module, line: int) -> list[Rule]:
    """The rules of a module that use the code at a line."""
    rules = [rule for rule in collect(module) if isinstance(rule, Rule)]
    here = next((node for node in tree.body if node.lineno <= line <= (node.end_lineno or line)), None)
    name = getattr(here, "name", "")
    if isinstance(here, ast.Assign):
        name = getattr(here.targets[0], "id", "")
    return [rule for rule in rules if not rule.paged or name in (rule.name, *parts(rule))] or rules
