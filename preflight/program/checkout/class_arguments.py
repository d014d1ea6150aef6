"""The arguments of a class in a checkout, from its syntax tree: nothing is imported or executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from preflight.program.checkout.framework_discovery import Files

MOST_BASES = 8
"""Base classes of one class that are followed."""
TAKES = ("pop", "get", "setdefault")
"""Calls on the keyword arguments of a class that take one of them by its name."""


class ClassArguments:
    """The arguments of the classes in folders of a checkout, by the names of the classes."""

    def __init__(self, files: Files, folders: Iterable[str]) -> None:
        self._files, self._folders = files, tuple(folders)
        self._found: dict[str, ast.ClassDef | None] = {}

    def takes(self, name: str, left: int = MOST_BASES) -> frozenset[str] | None:
        """The arguments that a class and its base classes take; None if no file of the folders has the class."""
        node = self._node(name) if name.isidentifier() and left else None
        if node is None:
            return None
        bases = (base.id for base in node.bases if isinstance(base, ast.Name))
        return frozenset(_arguments(node)).union(*(self.takes(base, left - 1) or () for base in bases))

    def _node(self, name: str) -> ast.ClassDef | None:
        if name not in self._found:
            self._found[name] = self._search(name)
        return self._found[name]

    def _search(self, name: str) -> ast.ClassDef | None:
        heads = re.compile(rf"(?m)^class {re.escape(name)}\b")
        for folder in self._folders:
            for path in self._files.names(folder):
                if heads.search(self._files.text(path) or "") and (text := self._files.code(path)) is not None:
                    return _class(text, name)
        return None


def arguments_of(files: Files, folders: Iterable[str] = ("",)) -> Callable[[str], frozenset[str] | None]:
    """Class name → the arguments of the class and its base classes; None if no file of the folders defines it."""
    return ClassArguments(files, folders).takes


def _class(text: str, name: str) -> ast.ClassDef | None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return next((one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name), None)


def _arguments(node: ast.ClassDef) -> Iterator[str]:
    """The parameters of its __init__, its fields, and the keywords that it takes from kwargs by name."""
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield one.target.id
        elif isinstance(one, ast.FunctionDef) and one.name == "__init__":
            given = one.args
            yield from (argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs))
            for call in ast.walk(one):
                if isinstance(call, ast.Call) and (name := _asked(call)):
                    yield name


def _asked(call: ast.Call) -> str:
    """The keyword that a call takes: kwargs.pop("x", 1); "" for other calls."""
    asks = isinstance(call.func, ast.Attribute) and call.func.attr in TAKES and bool(call.args)
    first = call.args[0] if asks else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
