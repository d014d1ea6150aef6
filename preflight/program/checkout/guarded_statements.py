"""The statements in which a framework refuses, changes or reads something, each with the condition that leads to it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import NamedTuple

try:  # hashlib first loads OpenSSL, which takes longer than all of this
    from _sha1 import sha1  # type: ignore[import-not-found]
except ImportError:
    from hashlib import sha1

REFUSALS = ("assert", "raise", "call", "exit")
"""Kinds of sites at which a run ends."""
_CLASS = {"assert": "refuse", "raise": "refuse"}
DIGITS = 10


@dataclass(frozen=True)
class Site:
    """One statement of interest.

    kind: assert, raise, call (of a checking function), exit, assign (of an argument, under a condition), parser (an
    option is added), statement (anything else that a rule names) or text (a line of documentation). condition: the
    parts that have to hold for it to take effect; of an assertion also what it denies. what: what it calls, assigns or
    is, "" for a refusal. number: which one of several alike in its function. start: the first line that belongs to it:
    of the branch that it alone fills, otherwise its own.
    """

    file: str
    function: str
    kind: str
    condition: frozenset[str]
    what: str
    start: int
    line: int
    end: int
    number: int = 0

    @cached_property
    def hash(self) -> str:
        """The identity of the check: an assertion and a raised error with the same condition are equal."""
        whole = "\n".join([_CLASS.get(self.kind, self.kind), self.what, *sorted(self.condition)])
        return str(sha1(whole.encode(), usedforsecurity=False).hexdigest()[:DIGITS])

    @property
    def shown(self) -> str:
        """The condition and the effect, for display."""
        return ": ".join(filter(None, [" and ".join(sorted(self.condition)), self.what]))


OWNERS = frozenset(
    {"args", "self", "config", "cfg", "transformer_config", "model_config", "arg", "parsed_args", "new_args"}
)
"""Names with the arguments as their attributes."""
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
    """Replaces arguments by their marked bare names."""

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
    """Whether a name refers to an argument."""
    return getattr(node, "argument", False)


def plain(tree: ast.Module) -> ast.Module:
    """The tree with arguments replaced by their bare names; it is changed in place."""
    changed: ast.Module = _Plain().visit(tree)
    return changed


def text(node: ast.AST) -> str:
    """Code as text on one line."""
    return re.sub(r"\s+", " ", ast.unparse(node)).strip()


def parts(node: ast.expr, holds: bool = True) -> frozenset[str]:
    """The parts of a condition that is true, or false."""
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


EXITS = re.compile(r"^(sys\.exit|exit|quit|os\._exit|os\.abort|\w*parser\.error)$")
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
Parts = frozenset[str]


class Way(NamedTuple):
    """The path to a statement: function, enclosing conditions, first line of the branch."""

    function: tuple[str, ...]
    guards: tuple[Callable[[], Parts], ...] = ()
    start: int = 0

    def under(self, guard: Callable[[], Parts], start: int = 0) -> Way:
        """The path into a block; its condition is computed only if the block has statements."""
        return Way(self.function, (*self.guards, cache(guard)), start)

    @property
    def condition(self) -> Parts:
        return frozenset().union(*(guard() for guard in self.guards))


def sites(file: str, source: str, calls: re.Pattern[str], *, everything: bool = False) -> list[Site]:
    """Every site of a file in order.

    calls: names of functions that check; everything: also statements that are nothing of all that.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    found = sites_of(file, tree, calls, everything=everything)
    alike: Counter[tuple[str, str]] = Counter()
    numbered = []
    for site in found:
        numbered.append(replace(site, number=alike[site.function, site.hash]))
        alike[site.function, site.hash] += 1
    return numbered


def sites_of(
    file: str, tree: ast.Module, calls: re.Pattern[str], path: tuple[str, ...] = (), *, everything: bool = False
) -> Iterator[Site]:
    """The sites of a syntax tree, which is changed. path: names of the definitions around it."""
    return _walk(file, plain(tree).body, Way(path), _Told(calls, everything))


def lines(file: str, source: str) -> list[Site]:
    """The lines of a page of documentation as sites."""
    rows = ((number, re.sub(r"\s+", " ", row).strip()) for number, row in enumerate(source.splitlines(), 1))
    return [Site(file, "", "text", frozenset(), row, number, number, number) for number, row in rows if row]


def _walk(file: str, body: list[ast.stmt], way: Way, told: _Told) -> Iterator[Site]:
    for node in body:
        if (found := told(node, way)) is not None:
            kind, condition, what = found
            function, start = ".".join(way.function), way.start or node.lineno
            yield Site(file, function, kind, condition, what, start, node.lineno, _end(node))
        for inner, its_way in _inside(node, way):
            yield from _walk(file, inner, its_way, told)


def _inside(node: ast.stmt, way: Way) -> Iterator[tuple[list[ast.stmt], Way]]:
    """The blocks in a statement, each with the path to it."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.body, Way((*way.function, node.name))
    elif isinstance(node, ast.If):
        yield node.body, way.under(partial(parts, node.test), node.lineno)
        yield node.orelse, way.under(partial(parts, node.test, False), node.lineno)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield node.body, way.under(lambda: frozenset({f"for {text(node.target)} in {text(node.iter)}"}))
        yield node.orelse, way
    elif isinstance(node, ast.While):
        yield node.body, way.under(lambda: frozenset({f"while {text(node.test)}"}))
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        yield node.body, way
    elif isinstance(node, ast.Try):
        yield node.body, way
        for handler in node.handlers:
            yield handler.body, way.under(partial(_caught, handler), handler.lineno)
        yield node.orelse, way
        yield node.finalbody, way
    elif isinstance(node, ast.Match):
        for case in node.cases:
            yield case.body, way.under(partial(_matched, node.subject, case), case.pattern.lineno)


def _caught(handler: ast.ExceptHandler) -> Parts:
    return frozenset({f"except {text(handler.type) if handler.type is not None else 'anything'}"})


def _matched(subject: ast.expr, case: ast.match_case) -> Parts:
    return frozenset({f"{text(subject)} is {text(case.pattern)}"}) | (parts(case.guard) if case.guard else frozenset())


class _Told(NamedTuple):
    """Describes a statement: kind, condition and content; None if it is not requested."""

    calls: re.Pattern[str]
    everything: bool

    def __call__(self, node: ast.stmt, way: Way) -> tuple[str, Parts, str] | None:
        if isinstance(node, ast.Assert):
            return "assert", way.condition | parts(node.test, False), ""
        if isinstance(node, ast.Raise) and node.exc is not None:
            return "raise", way.condition, ""
        if (called := self._called(node, way)) is not None:
            return called
        if way.guards and (changed := _changed(node)):
            return "assign", way.condition, changed
        if not self.everything or isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)
        ):
            return None
        return "statement", way.condition, text(_head(node))

    def _called(self, node: ast.stmt, way: Way) -> tuple[str, Parts, str] | None:
        value = getattr(node, "value", None)
        if not isinstance(value, ast.Call):
            return None
        name = ast.unparse(value.func)
        if EXITS.match(name):
            return "exit", way.condition, ""
        if self.calls.search(name):
            return "call", way.condition, text(_without_messages(value))
        if name.endswith("add_argument") and value.args and isinstance(value.args[0], ast.Constant):
            return "parser", way.condition, str(value.args[0].value)
        return None


def _end(node: ast.stmt) -> int:
    """The last line of a statement; for a compound statement that of its head."""
    if not isinstance(node, BLOCKS):
        return node.end_lineno or node.lineno
    head = _head(node)
    return (head.end_lineno if isinstance(head, ast.expr) else None) or node.lineno


def _head(node: ast.stmt) -> ast.AST:
    """A statement without the blocks in it."""
    for name in ("test", "iter", "subject"):
        if isinstance(held := getattr(node, name, None), ast.expr):
            return held
    return ast.Pass() if isinstance(node, (ast.Try, ast.With, ast.AsyncWith)) else node


def _without_messages(call: ast.Call) -> ast.Call:
    def said(node: ast.expr) -> bool:
        return isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        )

    kept = [one for one in call.keywords if one.arg not in ("message", "msg") and not said(one.value)]
    return ast.Call(call.func, [one for one in call.args if not said(one)], kept)


def _changed(node: ast.stmt) -> str:
    """The assignment of an argument, "" for another statement."""
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, (ast.AugAssign, ast.AnnAssign))
        else []
    )
    for target in targets:
        if is_argument(target):
            return text(node)
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "setattr"
        and len(node.value.args) == 3
    ):
        owner, name, value = node.value.args
        if isinstance(owner, ast.Name) and owner.id in OWNERS:
            return f"{text(name)} = {text(value)}"
    return ""
