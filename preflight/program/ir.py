"""A Python file as nested tuples, which are interpreted, and cached between runs."""

from __future__ import annotations

import argparse
import ast
import marshal
import re
import warnings
from collections.abc import Iterator, Mapping

from preflight.source.typing_without_import import Any

Node = tuple[Any, ...]
VERSION = 2
"""Increases with every change of the format."""
DEPTH = 250
"""Levels of nesting that are converted; real programs are not nested more deeply."""
PLAIN = (str, int, float, bool, type(None), bytes, complex, type(...))
DROPPED = frozenset(("ctx", "type_comment", "kind", "type_params", "simple"))


class Unreadable(Exception):
    """Raised if the text cannot be converted."""


def compile_source(text: str) -> tuple[Node, ...]:
    """The statements of a file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        return compile_tree(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(str(error)[:200]) from None


def compile_tree(tree: ast.Module) -> tuple[Node, ...]:
    """The statements of a parsed file."""
    return _block(tree.body, 0)


def compile_expression(text: str) -> Node:
    """One expression, from a quoted annotation or an argument of eval."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _node(ast.parse(text.strip(), mode="eval").body, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(str(error)[:200]) from None


def body_of(packed: bytes) -> tuple[Node, ...]:
    """The statements of a function."""
    found: tuple[Node, ...] = marshal.loads(packed)
    return found


def names_in(body: tuple[Node, ...]) -> Iterator[str]:
    """The names and attributes used by statements; "def" for a function, whose body is not read."""
    stack: list[Any] = list(body)
    while stack:
        node = stack.pop()
        if not isinstance(node, tuple):
            continue
        if node[:1] == ("FunctionDef",):
            yield "def"
        elif node[:1] == ("Name",):
            yield node[3]
        elif node[:1] == ("Attribute",):
            yield node[4]
        stack.extend(node)


def _block(body: list[ast.stmt], depth: int) -> tuple[Node, ...]:
    return tuple([_node(one, depth + 1) for one in body])


def _node(node: Any, depth: int) -> Node:
    if depth > DEPTH:
        raise Unreadable("nested too deeply")
    special = _SPECIAL.get(type(node))
    if special is not None:
        made: Node = special(node, depth)
        return made
    fields = [_field(getattr(node, name), depth + 1) for name in node._fields if name not in DROPPED]
    return (type(node).__name__, getattr(node, "lineno", 0), getattr(node, "end_lineno", None) or 0, *fields)


def _field(value: Any, depth: int) -> Any:
    if isinstance(value, (ast.operator, ast.unaryop, ast.boolop, ast.cmpop)):
        return type(value).__name__
    if isinstance(value, ast.AST):
        return _node(value, depth)
    if isinstance(value, list):
        return tuple([_field(one, depth) for one in value])
    return value


def _head(node: Any) -> tuple[str, int, int]:
    return type(node).__name__, node.lineno, node.end_lineno or node.lineno


def _constant(node: ast.Constant, depth: int) -> Node:
    if not isinstance(node.value, PLAIN):
        raise Unreadable("a constant of an unknown type")
    return (*_head(node), node.value)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, depth: int) -> Node:
    body = _block(node.body, depth)
    yields = isinstance(node, ast.AsyncFunctionDef) or _yields(node.body)
    decorators = tuple([_node(one, depth + 1) for one in node.decorator_list])
    return (
        "FunctionDef",
        node.lineno,
        node.lineno,
        node.name,
        _parameters(node.args, depth),
        marshal.dumps(body),
        decorators,
        yields,
        isinstance(node, ast.AsyncFunctionDef),
    )


def _yields(body: list[ast.stmt]) -> bool:
    """Whether a function is a generator."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))
    return False


def _parameters(given: ast.arguments, depth: int) -> Node:
    """(positional names, number of positional-only names, *rest, keyword names, their defaults, **rest, defaults of the
    last positional names)."""
    return (
        tuple([one.arg for one in [*given.posonlyargs, *given.args]]),
        len(given.posonlyargs),
        given.vararg.arg if given.vararg else None,
        tuple([one.arg for one in given.kwonlyargs]),
        tuple([_node(one, depth + 1) if one is not None else None for one in given.kw_defaults]),
        given.kwarg.arg if given.kwarg else None,
        tuple([_node(one, depth + 1) for one in given.defaults]),
    )


def _lambda(node: ast.Lambda, depth: int) -> Node:
    return (*_head(node), _parameters(node.args, depth), _node(node.body, depth + 1))


def _call(node: ast.Call, depth: int) -> Node:
    keywords = tuple([(one.arg, _node(one.value, depth + 1)) for one in node.keywords])
    return (*_head(node), _node(node.func, depth + 1), tuple([_node(one, depth + 1) for one in node.args]), keywords)


def _class(node: ast.ClassDef, depth: int) -> Node:
    keywords = tuple([(one.arg, _node(one.value, depth + 1)) for one in node.keywords])
    bases, decorators = ([_node(one, depth + 1) for one in some] for some in (node.bases, node.decorator_list))
    return (
        "ClassDef",
        node.lineno,
        node.lineno,
        node.name,
        tuple(bases),
        keywords,
        _block(node.body, depth),
        tuple(decorators),
    )


def _imported(node: ast.Import, depth: int) -> Node:
    return (*_head(node), tuple([(one.name, one.asname) for one in node.names]))


def _imported_from(node: ast.ImportFrom, depth: int) -> Node:
    return (*_head(node), node.module or "", tuple([(one.name, one.asname) for one in node.names]), node.level)


def _with(node: ast.With, depth: int) -> Node:
    items = tuple(
        [
            (_node(one.context_expr, depth + 1), _node(one.optional_vars, depth + 1) if one.optional_vars else None)
            for one in node.items
        ]
    )
    return (*_head(node), items, _block(node.body, depth))


def _comprehension(node: ast.comprehension, depth: int) -> Node:
    tests = tuple([_node(one, depth + 1) for one in node.ifs])
    return (_node(node.target, depth + 1), _node(node.iter, depth + 1), tests, bool(node.is_async))


def _match(node: ast.Match, depth: int) -> Node:
    """A match with only value patterns becomes a chain of conditions; any other is kept and unknown."""
    cases = [(_tests(case.pattern), case) for case in node.cases]
    if any(tests is None for tests, _ in cases):
        return ("Match", node.lineno, node.end_lineno or node.lineno)
    subject = f"match at line {node.lineno}"
    chain: tuple[Node, ...] = ()
    for tests, case in reversed(cases):
        condition = _condition(subject, tests or [], case, depth)
        chain = (("If", case.pattern.lineno, case.pattern.lineno, condition, _block(case.body, depth), chain),)
    kept = ("Assign", node.lineno, node.lineno, (("Name", 0, 0, subject),), _node(node.subject, depth + 1))
    return ("If", node.lineno, node.lineno, ("Constant", 0, 0, True), (kept, *chain), ())


def _tests(pattern: ast.pattern) -> list[ast.expr] | None:
    """The values that a pattern accepts; an empty list accepts everything."""
    if isinstance(pattern, ast.MatchValue):
        return [pattern.value]
    if isinstance(pattern, ast.MatchSingleton):
        return [ast.Constant(pattern.value, lineno=pattern.lineno, end_lineno=pattern.lineno)]
    if isinstance(pattern, ast.MatchOr):
        found = [_tests(one) for one in pattern.patterns]
        return None if not all(found) else [test for one in found for test in one or []]
    return [] if isinstance(pattern, ast.MatchAs) and pattern.name is None and pattern.pattern is None else None


def _condition(subject: str, tests: list[ast.expr], case: ast.match_case, depth: int) -> Node:
    line = case.pattern.lineno
    name = ("Name", line, line, subject)
    found: Node = ("Constant", line, line, True)
    if tests:
        equal = tuple([("Compare", line, line, name, ("Eq",), (_node(one, depth + 1),)) for one in tests])
        found = ("BoolOp", line, line, "Or", equal)
    return found if case.guard is None else ("BoolOp", line, line, "And", (found, _node(case.guard, depth + 1)))


_SPECIAL: dict[type, Any] = {
    ast.Constant: _constant,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.Lambda: _lambda,
    ast.Call: _call,
    ast.ClassDef: _class,
    ast.Import: _imported,
    ast.ImportFrom: _imported_from,
    ast.With: _with,
    ast.comprehension: _comprehension,
    ast.Match: _match,
}


PARSES = re.compile(r"parser|group|arg|option|register|flag|^def$", re.IGNORECASE)
"""Parts of the names of parsers, of their groups and of functions that extend them; the body of a function may also add
options."""


def reaches_parser(body: tuple[Node, ...], values: Mapping[str, Any]) -> bool:
    """Whether statements mention a parser, a group of one, or anything that contains or extends one."""
    return any(
        PARSES.search(name) or isinstance(values.get(name), argparse._ActionsContainer) for name in names_in(body)
    )
