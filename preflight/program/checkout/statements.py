"""The sites of one Python file, by its syntax tree."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

from preflight.program.checkout.conditions import OWNERS, is_argument, parts, plain, text
from preflight.program.checkout.sites import Site

EXITS = re.compile(r"^(sys\.exit|exit|quit|os\._exit|os\.abort|\w*parser\.error)$")
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
Parts = frozenset[str]


class Way(NamedTuple):
    """How one comes to a statement: function, what it stands under, first line of the branch."""

    function: tuple[str, ...]
    guards: tuple[Callable[[], Parts], ...] = ()
    start: int = 0

    def under(self, guard: Callable[[], Parts], start: int = 0) -> Way:
        """The way into a block; its condition is written out only where something stands in it."""
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
    """The sites of a syntax tree, which is changed. path: names of the definitions in which it stands."""
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
    """The blocks in a statement, each with the way to it."""
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
    """Says of a statement what it is: kind, condition and content; None where nobody asks."""

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
    """The last line of a statement, of one with blocks in it that of its head."""
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
    """The assignment of an argument, "" where a statement is none."""
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
