"""Python programs that start a launch from literals, or that build a run's configuration. Parsed, never run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice

from preflight.loaders.document import Document, Word
from preflight.loaders.launchers import take_apart
from preflight.loaders.python_values import Values
from preflight.loaders.text_limits import MAX_SCRIPT, refuse_large
from preflight.source.source_file import InputError, Source

MOST_LAUNCHES, MOST_NODES, MAX_CALLS = 64, 20_000, 10
RETURNED = "ConfigContainer"
"""Return types that mark recipes."""
_STARTS = frozenset(
    ["run", "call", "check_call", "check_output", "Popen", "system", "popen", "execvp", "execv", "execvpe", "spawnvp"]
)
_MODULES = frozenset(["subprocess", "sp", "os"])


def load_python(source: Source) -> tuple[Document, ...]:
    """The launches that a program starts; one document without a launch if it has no literal one."""
    refuse_large(source, MAX_SCRIPT)
    configures = RETURNED in source.text
    if not configures and "subprocess" not in source.text and "os." not in source.text:
        return (Document(source, "python"),)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.text)
    except (SyntaxError, ValueError) as error:
        raise InputError(f"invalid Python: {error}", source.name) from None
    if configures:
        from preflight.loaders.recipes import recipes

        if made := recipes(source, tree):
            return made
    if len(list(islice(ast.walk(tree), MOST_NODES))) == MOST_NODES:
        return (Document(source, "python"),)
    found = [taken for words in _commands(source, tree) if (taken := take_apart(words)) is not None][:MOST_LAUNCHES]
    if not found:
        return (Document(source, "python"),)
    return tuple(
        Document(source, "python", launch=taken.launch, problems=taken.problems, run=run, runs=len(found))
        for run, taken in enumerate(found)
    )


def _commands(source: Source, tree: ast.Module) -> Iterator[Sequence[Word]]:
    """The words of each command, statement by statement: in the module, then in each function with the module's
    values."""
    values = Values(source)
    yield from _followed(tree.body, values)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = values.inside(node)
            yield from _followed(node.body, inner)


def _followed(body: Sequence[ast.stmt], values: Values, depth: int = 0) -> Iterator[Sequence[Word]]:
    """Commands of statements, in order; deeply nested ones are skipped."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inner = [part for name in ("body", "orelse", "finalbody") for part in getattr(statement, name, ())]
        if inner and depth == MAX_CALLS:
            return
        if inner:
            values.forget([statement])
            yield from _followed(inner, values, depth + 1)
            values.forget([statement])
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and _starts(node) and (words := values.command(node.args)) is not None:
                yield words
        values.take(statement)


def _starts(call: ast.Call) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _STARTS or not call.args:
        return False
    return isinstance(function.value, ast.Name) and function.value.id in _MODULES
