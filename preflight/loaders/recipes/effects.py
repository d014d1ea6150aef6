"""Which keys of a configuration a piece of Python may set: what it assigns, and what it hands the configuration to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

Path = tuple[str, ...]
Names = Mapping[str, Path]
"""Names that stand for a configuration or a part of it, by the path of that part."""
MAX_DEPTH = 8
READERS = frozenset(["hasattr", "getattr", "isinstance", "len", "str", "int", "float", "bool", "print", "type", "max"])
"""Functions that change nothing of what they are handed."""


def chain(node: ast.AST, names: Names) -> Path | None:
    """The path that an expression like `cfg.model.x` stands for."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    return (*names[node.id], *reversed(parts))


class Effects:
    """What functions may set of the configuration that is their first argument; each is read once.

    known: of those that are not read here.
    """

    def __init__(self, functions: Mapping[str, ast.FunctionDef], known: Mapping[str, frozenset[Path]]) -> None:
        self.functions = functions
        self.known: dict[str, frozenset[Path] | None] = {**known}

    def of(self, name: str, depth: int = 0) -> frozenset[Path] | None:
        """The keys that a function may set; None where any may be."""
        function = self.functions.get(name)
        if name not in self.known and function is not None and function.args.args and depth < MAX_DEPTH:
            self.known[name] = None  # where it calls itself
            self.known[name] = set_by(function.body, {function.args.args[0].arg: ()}, self, depth + 1)
        return self.known.get(name)


def set_by(statements: Iterable[ast.stmt], names: Names, effects: Effects, depth: int = 0) -> frozenset[Path] | None:
    """The keys that statements may set; None where any may be."""
    found: set[Path] = set()
    for node in (node for statement in statements for node in ast.walk(statement)):
        paths = _set_at(node, names, effects, depth)
        if paths is None:
            return None
        found |= paths
    return frozenset(found)


def _set_at(node: ast.AST, names: Names, effects: Effects, depth: int) -> set[Path] | None:
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        path = chain(node.value if isinstance(node, ast.Subscript) else node, names)
        return {path} if path else set() if path is None else None
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in names:
        return None
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.withitem):
        return None if _renames(node, names) else set()
    if isinstance(node, ast.Call):
        return _set_by_call(node, names, effects, depth)
    return set()


def _renames(node: ast.AST, names: Names) -> bool:
    """Whether a part of the configuration gets another name, under which it may be changed."""
    value = getattr(node, "value", None) or getattr(node, "iter", None) or getattr(node, "context_expr", None)
    targets = getattr(node, "targets", None) or [getattr(node, "target", None) or getattr(node, "optional_vars", None)]
    path = chain(value, names) if value is not None else None
    return path is not None and len(path) <= 1 and any(isinstance(one, ast.Name) for one in targets)


def _set_by_call(call: ast.Call, names: Names, effects: Effects, depth: int) -> set[Path] | None:
    function = call.func
    own = chain(function, names)
    if own is not None:  # a method of a part: it may set what is in there
        return {own[:-1]} if len(own) > 1 else None
    name = function.id if isinstance(function, ast.Name) else ""
    handed = [*handed_over(call, names)]
    if not handed or name in READERS:
        return set()
    first = chain(call.args[0], names) if call.args else None
    if first is not None and handed == [first]:
        known = effects.of(name, depth)
        return None if known is None and not first else {first} if known is None else {(*first, *one) for one in known}
    return None if () in handed else set(handed)


def handed_over(call: ast.Call, names: Names) -> Iterator[Path]:
    """The parts of the configuration that a call gets, at any place; numbers and texts in them cannot be changed."""
    for argument in (*call.args, *(one.value for one in call.keywords)):
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        path = chain(inner, names)
        if path is not None:
            yield path
        elif isinstance(inner, ast.List | ast.Tuple | ast.Dict | ast.Set):
            yield from (path for one in ast.walk(inner) if (path := chain(one, names)) is not None)
