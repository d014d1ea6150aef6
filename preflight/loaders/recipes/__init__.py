"""Python functions that return the configuration of a run, as far as their assignments are literal."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice

from preflight import schemas
from preflight.loaders.document import Document, Entry, Node
from preflight.loaders.python_values import Values
from preflight.loaders.recipes.recipe_assignments import CONTAINER, Assigned, Effects, Path, Recipe, made
from preflight.source.record import NamedTuple
from preflight.source.source_file import Source, Span

NAME = "recipe"
"""The key for the name of the function."""
MOST_RECIPES, MOST_NODES, MAX_CHAIN = 100, 60_000, 4


def recipes(source: Source, tree: ast.Module) -> tuple[Document, ...]:
    """A document for each function that returns a configuration, with its assignments as a tree."""
    if len(list(islice(ast.walk(tree), MOST_NODES))) == MOST_NODES:
        return ()
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    own = [node for node in functions.values() if _makes(node)][:MOST_RECIPES]
    program = _program(tree) if own else None
    if program is None:
        return ()
    read = _Reader(source, tree, functions, program)
    found = [(node, recipe) for node in own if (recipe := read.recipe(node.name, 0)) is not None and recipe.values]
    trees = [_tree(source, node, recipe.values, node.name in read.bases) for node, recipe in found]
    return tuple(Document(source, "python", tree=tree, run=run, runs=len(trees)) for run, tree in enumerate(trees))


class Program(NamedTuple):
    """A program that uses recipes. package: imported by recipes; helpers: what its functions set, by their names."""

    package: str
    helpers: dict[str, frozenset[Path]]


class _Reader:
    """The functions of a file, each read only once."""

    def __init__(
        self, source: Source, tree: ast.Module, functions: dict[str, ast.FunctionDef], program: Program
    ) -> None:
        self.values, self.functions = Values(source), functions
        self.effects = Effects(functions, _imported(tree, program))
        self.bases: set[str] = set()
        self.constants = _constants(tree)
        self.read: dict[str, Recipe | None] = {}

    def recipe(self, name: str, depth: int) -> Recipe | None:
        """The result of a function; None if it creates no configuration, or is reached through too many others."""
        function = self.functions.get(name)
        if function is None or depth > MAX_CHAIN or function.decorator_list or not _makes(function):
            return None
        if name not in self.read:
            self.read[name] = None
            followed = Recipe(self.values, self.constants, self.effects, lambda other: self.recipe(other, depth + 1))
            followed.follow(function)
            self.read[name] = followed if followed.settled else None
        if depth and self.read[name] is not None:
            self.bases.add(name)
        return self.read[name]


def _makes(function: ast.FunctionDef) -> bool:
    """Whether a function is annotated to return a configuration."""
    returned = function.returns
    named = returned.id if isinstance(returned, ast.Name) else getattr(returned, "attr", None)
    return (named or getattr(returned, "value", None)) == CONTAINER and bool(function.body)


def _program(tree: ast.Module) -> Program | None:
    """The program whose package is imported."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return next((one for one in _programs() if any(_imports(node, one.package) for node in nodes)), None)


def _imports(node: ast.AST, package: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").startswith(package)
    return isinstance(node, ast.Import) and any(one.name.startswith(package) for one in node.names)


def _imported(tree: ast.Module, program: Program) -> dict[str, frozenset[Path]]:
    """The parts that imported functions of the program may set."""
    return {
        alias.asname or alias.name: program.helpers[alias.name]
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and _imports(node, program.package)
        for alias in node.names
        if alias.name in program.helpers
    }


@cache
def _programs() -> tuple[Program, ...]:
    tables = map(schemas.read, schemas.names("recipes"))
    return tuple(Program(table["package"], _paths(table["helpers"])) for table in tables)


def _paths(helpers: dict[str, list[str]]) -> dict[str, frozenset[Path]]:
    return {name: frozenset(tuple(key.split(".")) for key in keys) for name, keys in helpers.items()}


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Names of a module that are assigned once."""
    found: dict[str, ast.expr] = {}
    stored = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and _stored(node))
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.expr) and stored[target.id] == 1:
            found[target.id] = value
    return found


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _tree(source: Source, function: ast.FunctionDef, values: dict[Path, Assigned], base: bool) -> Node:
    """The assignments as nested mappings, each value at its place. base: others start from it, so it is not edited."""
    start = source.text.index(function.name, source.starts[function.lineno - 1])
    name = Span(source, start, start + len(function.name))
    kept = {path: made(one) for path, one in values.items()} if base else values
    entries = [Entry(Node("scalar", NAME, name), Node("scalar", function.name, name))]
    return Node("mapping", (*entries, *_nested(kept, name)), name)


def _nested(values: dict[Path, Assigned], place: Span) -> Iterator[Entry]:
    sections: dict[str, dict[Path, Assigned]] = {}
    for path, one in values.items():
        sections.setdefault(path[0], {})[path[1:]] = one
    for key, inner in sections.items():
        if () in inner:
            yield Entry(Node("scalar", key, inner[()].key), inner[()].value)
        else:
            first = next(iter(inner.values())).key
            yield Entry(Node("scalar", key, first), Node("mapping", tuple(_nested(inner, place)), first))
