"""Python that was cut, renamed and nested: real functions and files, turned into artificial ones."""

from __future__ import annotations

import ast
import contextlib
import copy
import os
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from .choices import Choices, T

Place = tuple[Any, Any]
"""A list or the fields of a node, and a position in it."""
NAMED = (ast.Name, ast.Attribute, ast.arg, ast.keyword)

VARIABLE = "PREFLIGHT_FUZZ_TREES"
"""Names folders of Python to take functions from; without it they are preflight's own."""
MOST, LONGEST = 4, 80
"""Changes at a time, and lines of a function that is taken."""
ODD = (
    "args",
    "self",
    "torch",
    "None",
    "print",
    "len",
    "getattr",
    "range",
    "cls",
    "np",
    "x",
    "super",
    "re",
    "isinstance",
)
CONSTANTS = (0, 1, -1, 8, 3.5, 10**9, "", "a", "{}", "%s", "(a+)+", None, True, False, b"x", ...)
WRAPS = (
    "if {e}:\n    pass",
    "for i in {e}:\n    pass",
    "while {e}:\n    pass",
    "try:\n    pass\nexcept {e}:\n    raise",
    "try:\n    pass\nfinally:\n    x = {e}",
    "with {e} as w:\n    pass",
    "def inner(a, *b, c={e}, **d):\n    pass",
    "class Inner({e}):\n    pass",
    "for _ in range(3):\n    pass",
    "match {e}:\n    case 1:\n        pass\n    case _:\n        pass",
    "async def inner():\n    pass",
)
AROUND = (
    *("f({e})", "{e}.x", "{e}[{e}]", "[{e}] * 3", "not {e}", "-{e}", "({e}, {e})", "{{{e}: {e}}}", "{e} + {e}"),
    *("lambda a: {e}", "[{e} for i in {e}]", "{{{e} for a in range(3) if {e}}}", "{e} if {e} else {e}", "(yield {e})"),
    *("f'{{{e}!r:>{{{e}}}}}'", "str({e})", "list({e})", "getattr({e}, 'x', {e})", "{e} % {e}", "{e}(*{e}, **{e})"),
    *(
        "{e} < {e} < {e}",
        "{e} and {e}",
        "(w := {e})",
        "{e}[{e}:{e}]",
        "sorted({e}, key={e})",
        "{e} ** {e}",
        "await {e}",
    ),
    *("isinstance({e}, {e})", "'{{}}'.format({e})", "{e} in {e}", "next(iter({e}))", "type({e})({e})", "sum({e})"),
)


def folders() -> list[Path]:
    """The sources of functions."""
    stated = os.environ.get(VARIABLE, "")
    own = Path(__file__).resolve().parents[2]
    return [Path(one) for one in stated.split(os.pathsep) if one] or [own / "preflight", own / "upstream"]


@cache
def files() -> tuple[tuple[str, Path], ...]:
    """Every file of Python: its name as a module, and its path."""
    return tuple(
        (".".join([root.name, *path.relative_to(root).with_suffix("").parts]).removesuffix(".__init__"), path)
        for root in folders()
        for path in sorted(root.rglob("*.py"))
        if path.stat().st_size < 400_000
    )


@lru_cache(maxsize=4000)
def functions(path: Path) -> tuple[tuple[str, str], ...]:
    """The functions of a file: the class around each, and its text."""
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    found = []
    for owner, node in _defined(tree, ""):
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        last = node.end_lineno or first
        if last - first < LONGEST:
            found.append((owner, textwrap.dedent("\n".join(lines[first - 1 : last]))))
    return tuple(found)


@cache
def statements(path: Path) -> tuple[tuple[int, int], ...]:
    """The first and last lines of the statements of a file, and of those in its functions and classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    below = [one for node in tree.body for one in getattr(node, "body", [])]
    found = [one for one in [*tree.body, *below] if isinstance(one, ast.stmt)]
    return tuple((min([one.lineno, *_decorated(one)]), one.end_lineno or one.lineno) for one in found)


def _decorated(node: ast.stmt) -> list[int]:
    return [one.lineno for one in getattr(node, "decorator_list", [])]


def _defined(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for one in ast.iter_child_nodes(node):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield owner, one
        elif isinstance(one, (ast.ClassDef, ast.If, ast.Try)):
            yield from _defined(one, one.name if isinstance(one, ast.ClassDef) else owner)


class Places:
    """The nodes of a tree, and the positions of expressions and statements before it was changed."""

    def __init__(self, tree: ast.AST) -> None:
        self.nodes: list[ast.AST] = []
        self.named: list[ast.AST] = []
        self.constants: list[ast.Constant] = []
        self.expressions: list[Place] = []
        self.statements: list[Place] = []
        stack: list[ast.AST] = [tree]
        while stack:
            node = stack.pop()
            self.nodes.append(node)
            if isinstance(node, NAMED):
                self.named.append(node)
            elif isinstance(node, ast.Constant):
                self.constants.append(node)
            if not isinstance(node, (ast.JoinedStr, ast.FormattedValue)):
                stack += self._below(node)

    def _below(self, node: ast.AST) -> Iterator[ast.AST]:
        for name, field in node.__dict__.items():
            if isinstance(field, ast.AST):
                if isinstance(field, ast.expr):
                    self.expressions.append((node.__dict__, name))
                yield field
            elif isinstance(field, list):
                for at, one in enumerate(field):
                    if isinstance(one, ast.AST):
                        if isinstance(one, ast.expr):
                            self.expressions.append((field, at))
                        elif isinstance(one, ast.stmt):
                            self.statements.append((field, at))
                        yield one


def changed(choices: Choices, tree: ast.Module, times: int) -> Iterator[ast.Module]:
    """A tree, changed a little more each time."""
    places = Places(tree)
    for _ in range(times):
        for _ in range(1 + choices.below(MOST)):
            with contextlib.suppress(IndexError, KeyError):  # a place that an earlier change took away
                CHANGES[choices.below(len(CHANGES))](choices, places)
        yield tree


def text_of(tree: ast.Module) -> str | None:
    """The text of a tree; None if Python never produces such a tree."""
    try:
        return ast.unparse(tree)
    except (AttributeError, TypeError, ValueError):
        return None


def _any(choices: Choices, items: Sequence[T]) -> T:
    if not items:
        raise IndexError("nothing of that kind is there")
    return items[choices.below(min(len(items), 65_536))]


def _cut(choices: Choices, places: Places) -> None:
    """Leave out a statement, an argument, an item."""
    node = _any(choices, places.nodes)
    lists = [value for value in node.__dict__.values() if isinstance(value, list) and value]
    if lists:
        chosen = choices.of(lists)
        del chosen[choices.below(len(chosen))]
        if not chosen and node.__dict__.get("body") == []:
            node.body = [ast.Pass()]  # type: ignore[attr-defined]


def _renamed(choices: Choices, places: Places) -> None:
    """Give a name or an attribute another name, one of those around it mostly."""
    node = _any(choices, places.named)
    other = choices.of(ODD) if choices.one_in(3) else _name(_any(choices, places.named)) or "x"
    field = next(name for name in ("id", "attr", "arg") if hasattr(node, name))
    setattr(node, field, other)


def _name(node: ast.AST) -> str:
    return str(getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", None) or "")


def _moved(choices: Choices, places: Places) -> None:
    """Replace one expression or statement with another."""
    there = places.statements if choices.one_in(3) else places.expressions
    holder, at = _any(choices, there)
    source, where = _any(choices, there)
    holder[at] = copy.deepcopy(source[where])


def _nested(choices: Choices, places: Places) -> None:
    """Put a statement into a block, or an expression into another."""
    holder, at = _any(choices, places.expressions)
    if choices.below(2):
        whole = _hollow(choices.of(AROUND).format(e="HOLE"), "eval").body
        _fill(choices, whole, holder[at], places)
        holder[at] = whole
        return
    wrap = _hollow(choices.of(WRAPS).format(e="HOLE"), "exec").body[0]
    _fill(choices, wrap, copy.deepcopy(holder[at]), places)
    holder, at = _any(choices, places.statements)
    block = wrap.cases[choices.below(2)] if isinstance(wrap, ast.Match) else wrap
    block.body = [holder[at]]
    holder[at] = wrap


def _hollow(text: str, mode: str) -> Any:
    return copy.deepcopy(_parsed(text, mode))


@cache
def _parsed(text: str, mode: str) -> Any:
    return ast.parse(text, mode=mode)


def _fill(choices: Choices, whole: ast.AST, value: ast.AST, places: Places) -> None:
    """Put a value into the first hole, names into the others."""
    names = [one for one in places.named if isinstance(one, ast.Name)]
    for holder, at in Places(whole).expressions:
        if isinstance(holder[at], ast.Name) and holder[at].id == "HOLE":
            holder[at] = value
            value = ast.Name(_any(choices, names).id if names else "x")


def _constant(choices: Choices, places: Places) -> None:
    """Give a constant another value."""
    _any(choices, places.constants).value = choices.of(CONSTANTS)


CHANGES = (_cut, _cut, _renamed, _renamed, _moved, _nested, _nested, _constant)
