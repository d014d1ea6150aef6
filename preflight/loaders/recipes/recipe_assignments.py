"""Follows a function that builds a configuration, statement by statement: the last assignments, and what is unknown."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from preflight.loaders.document import Node
from preflight.loaders.python_values import Values
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span

Path = tuple[str, ...]
Names = Mapping[str, Path]
"""Names for a configuration or a part of it, with the path of that part."""
MAX_DEPTH = 8
READERS = frozenset(["hasattr", "getattr", "isinstance", "len", "str", "int", "float", "bool", "print", "type", "max"])
"""Functions that do not modify their arguments."""


def chain(node: ast.AST, names: Names) -> Path | None:
    """The path of an expression such as `cfg.model.x`."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    return (*names[node.id], *reversed(parts))


class Effects:
    """The parts of a configuration that functions may set if it is their first argument; each function is read once.
    known: the parts for functions that are not read here.
    """

    def __init__(self, functions: Mapping[str, ast.FunctionDef], known: Mapping[str, frozenset[Path]]) -> None:
        self.functions = functions
        self.known: dict[str, frozenset[Path] | None] = {**known}

    def of(self, name: str, depth: int = 0) -> frozenset[Path] | None:
        """The keys that a function may set; None if any may be set."""
        function = self.functions.get(name)
        if name not in self.known and function is not None and function.args.args and depth < MAX_DEPTH:
            self.known[name] = None  # the function calls itself
            self.known[name] = set_by(function.body, {function.args.args[0].arg: ()}, self, depth + 1)
        return self.known.get(name)


def set_by(statements: Iterable[ast.stmt], names: Names, effects: Effects, depth: int = 0) -> frozenset[Path] | None:
    """The keys that statements may set; None if any may be set."""
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
    """Whether a part of the configuration gets another name, through which it may be changed."""
    value = getattr(node, "value", None) or getattr(node, "iter", None) or getattr(node, "context_expr", None)
    targets = getattr(node, "targets", None) or [getattr(node, "target", None) or getattr(node, "optional_vars", None)]
    path = chain(value, names) if value is not None else None
    return path is not None and len(path) <= 1 and any(isinstance(one, ast.Name) for one in targets)


def _set_by_call(call: ast.Call, names: Names, effects: Effects, depth: int) -> set[Path] | None:
    function = call.func
    own = chain(function, names)
    if own is not None:  # a method of a part may set its fields
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
    """The parts of the configuration passed to a call; numbers and texts in them cannot be changed."""
    for argument in (*call.args, *(one.value for one in call.keywords)):
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        path = chain(inner, names)
        if path is not None:
            yield path
        elif isinstance(inner, ast.List | ast.Tuple | ast.Dict | ast.Set):
            yield from (path for one in ast.walk(inner) if (path := chain(one, names)) is not None)


MADE = "made"
"""The style of a value assigned elsewhere: it is not edited there."""
CONTAINER = "ConfigContainer"
MODEL, PUBLISHED = "hf_model_id", ("from_hf_pretrained", "from_hf_config")
TARGET = "_target_"
"""The key for the class of a section, as in a file that Megatron-Bridge writes."""
MAX_STEPS, MAX_NAME = 8, 200
MOST_VALUES, MOST_LITERALS = 1000, 50_000
"""Limits on the keys of a configuration, and on the literals read for it."""


class Assigned(NamedTuple):
    """A value with the place of its key."""

    key: Span
    value: Node


class Recipe:
    """The known values of a configuration. values: by path; settled: whether it was returned unchanged."""

    def __init__(
        self,
        values: Values,
        constants: Mapping[str, ast.expr],
        effects: Effects,
        others: Callable[[str], Recipe | None],
    ) -> None:
        self.places, self.effects, self.others = values, effects, others
        self.constants = dict(constants)
        self.values: dict[Path, Assigned] = {}
        self.names: dict[str, Path] = {}
        self.settled = False
        self.above: set[Path] = set()
        """Paths below which values may be known."""
        self.looked, self.twice = 0, False

    def follow(self, function: ast.FunctionDef) -> None:
        """Read a function up to its return statement."""
        arguments = function.args
        for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            self.constants.pop(one.arg if one is not None else "", None)
        last = function.body[-1]
        root = last.value if isinstance(last, ast.Return) else None
        name = root.id if isinstance(root, ast.Name) else ""
        if not name or any(isinstance(n, ast.Return) and n is not last for s in function.body for n in ast.walk(s)):
            return
        for statement in function.body[:-1]:
            self._take(statement, name)
        bounded = len(self.values) <= MOST_VALUES and self.looked <= MOST_LITERALS
        self.settled = name in self.names and bounded and not self.twice

    def _take(self, statement: ast.stmt, name: str) -> None:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        else:
            self._lose_by(statement)
            return
        if isinstance(target, ast.Name):
            self._named(target.id, value, name)
            return
        path = chain(target, self.names)
        if path is None:
            self._lose_by(statement)
            return
        self._lose_by(ast.Expr(value))
        self._put(path, self.places.span(target), value)

    def _named(self, target: str, value: ast.expr, name: str) -> None:
        """A separate name: the configuration, a part of it, or a value used later."""
        if target == name:
            self.values.clear()
            self.names = {name: ()}
            self._start(value)
            return
        self._lose_by(ast.Expr(value))
        part = chain(value, self.names)
        self.names.pop(target, None)
        self.constants.pop(target, None)
        if part is not None:
            self.names[target] = part
        elif self._literal(value) is not None:
            self.constants[target] = value

    def _start(self, value: ast.expr) -> None:
        """The origin of a configuration: its class with keywords, or another function that was read."""
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
            return
        if value.func.id == CONTAINER:
            self._expand((), value)
            return
        other = self.others(value.func.id) if not value.args and not value.keywords else None
        if other is not None and other.settled:
            for path, one in other.values.items():
                self._keep(path, made(one))

    def _put(self, path: Path, key: Span, value: ast.expr, depth: int = 0) -> None:
        self._lose(path)
        for end in range(1, len(path)):
            self.values.pop(path[:end], None)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name | ast.Attribute) and depth < MAX_STEPS:
            if (value.func.id if isinstance(value.func, ast.Name) else value.func.attr)[:1].isupper():
                self._expand(path, value, depth + 1)
            elif (model := self._published(value)) is not None:
                self._keep((*path, MODEL), Assigned(key, model))
            return
        other = self._linked(path, value)
        node = other.value._replace(style=MADE) if other is not None else self._literal(value)
        if node is not None:
            self._keep(path, Assigned(key, node))

    def _linked(self, path: Path, value: ast.expr) -> Assigned | None:
        """The aliases of a part: a value set through one name is also set through the other."""
        part = chain(value, self.names)
        for name in [name for name, known in self.names.items() if known and known[: len(path)] == path]:
            del self.names[name]
        if part is None and isinstance(value, ast.Name) and value.id not in self.constants:
            self.names[value.id] = path
        elif part in self.above:  # two sections that are the same object
            self.twice = True
        return self.values.get(part) if part is not None else None

    def _published(self, call: ast.Call) -> Node | None:
        """The name of the published model from which a provider is created."""
        for inner in (node for node in ast.walk(call) if isinstance(node, ast.Call) and node.args):
            if isinstance(inner.func, ast.Attribute) and inner.func.attr in PUBLISHED:
                node = self._literal(inner.args[0])
                return node._replace(style=MADE) if node is not None and isinstance(node.value, str) else None
        return None

    def _expand(self, path: Path, call: ast.Call, depth: int = 0) -> None:
        """The called class, and its keywords."""
        place = self.places.span(call.func)
        self._keep((*path, TARGET), Assigned(place, Node("scalar", place.text[:MAX_NAME], place, MADE)))
        for one in call.keywords:
            if one.arg is not None and isinstance(one, ast.keyword):
                start = self.places.span(one.value).start
                before = self.places.source.text[max(start - MAX_NAME, 0) : start]
                end = start - len(before) + len(before.rstrip().removesuffix("=").rstrip())
                key = Span(self.places.source, max(end - len(one.arg), 0), end)
                self._put((*path, one.arg), key, one.value, depth)

    def _literal(self, value: ast.expr, depth: int = 0) -> Node | None:
        """A number, a text, a list of them, or a name for one."""
        self.looked += 1
        if self.looked > MOST_LITERALS:
            return None
        if isinstance(value, ast.Name) and depth < MAX_STEPS:
            constant = self.constants.get(value.id)
            node = self._literal(constant, depth + 1) if constant is not None else None
            return node._replace(style=MADE) if node is not None else None
        span = self.places.span(value)
        if isinstance(value, ast.List | ast.Tuple) and depth < MAX_STEPS:
            items = [self._literal(item, depth + 1) for item in value.elts]
            return Node("sequence", tuple(i for i in items if i is not None), span) if None not in items else None
        try:
            plain = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
        return Node("scalar", plain, span) if plain is None or isinstance(plain, bool | int | float | str) else None

    def _lose_by(self, statement: ast.stmt) -> None:
        """Values that a statement may set are unknown after it."""
        found = set_by([statement], self.names, self.effects)
        for path in ((),) if found is None else found:
            self._lose(path)
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.constants.pop(node.id, None)

    def _keep(self, path: Path, one: Assigned) -> None:
        self.values[path] = one
        self.above.update(path[:end] for end in range(len(path)))

    def _lose(self, path: Path) -> None:
        self.values.pop(path, None)
        if path in self.above:
            self.above.discard(path)
            for known in [one for one in self.values if one[: len(path)] == path]:
                del self.values[known]


def made(one: Assigned) -> Assigned:
    """A value that another function assigns: it is reported there, and not edited for this one."""
    return one._replace(value=one.value._replace(style=MADE))
