"""A function that makes a configuration, statement by statement: what is assigned last, and what is not known."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from preflight.loaders.document import Node
from preflight.loaders.python_values import Values
from preflight.loaders.recipes.effects import Effects, Path, chain, set_by
from preflight.source.record import NamedTuple
from preflight.source.text import Span

MADE = "made"
"""The style of a value that stands elsewhere than where it is assigned: it is not edited there."""
CONTAINER = "ConfigContainer"
MODEL, PUBLISHED = "hf_model_id", ("from_hf_pretrained", "from_hf_config")
TARGET = "_target_"
"""The key under which the class of a section stands, as in a file that Megatron-Bridge writes."""
MAX_DEPTH, MAX_NAME = 8, 200
MOST_VALUES, MOST_LITERALS = 1000, 50_000
"""Keys of a configuration, and literals that are looked at for it."""


class Assigned(NamedTuple):
    """A value with the place of its key."""

    key: Span
    value: Node


class Recipe:
    """What is known of a configuration. values: by path; settled: whether it was returned as it is."""

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
        """Paths beneath which something may be known."""
        self.looked, self.twice = 0, False

    def follow(self, function: ast.FunctionDef) -> None:
        """Read a function up to where it returns."""
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
        """A name of its own: the configuration, a part of it, or something that is used later."""
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
        """What a configuration is made from: its class with keywords, or another function that was read."""
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
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name | ast.Attribute) and depth < MAX_DEPTH:
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
        """What a part is the same as: what is set by one of the names is set by the other from now on."""
        part = chain(value, self.names)
        for name in [name for name, known in self.names.items() if known and known[: len(path)] == path]:
            del self.names[name]
        if part is None and isinstance(value, ast.Name) and value.id not in self.constants:
            self.names[value.id] = path
        elif part in self.above:  # two sections that are one
            self.twice = True
        return self.values.get(part) if part is not None else None

    def _published(self, call: ast.Call) -> Node | None:
        """The name of the published model of which a provider is made."""
        for inner in (node for node in ast.walk(call) if isinstance(node, ast.Call) and node.args):
            if isinstance(inner.func, ast.Attribute) and inner.func.attr in PUBLISHED:
                node = self._literal(inner.args[0])
                return node._replace(style=MADE) if node is not None and isinstance(node.value, str) else None
        return None

    def _expand(self, path: Path, call: ast.Call, depth: int = 0) -> None:
        """The class that is called, and its keywords."""
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
        """A number, a text, a list of them, or a name that stands for one."""
        self.looked += 1
        if self.looked > MOST_LITERALS:
            return None
        if isinstance(value, ast.Name) and depth < MAX_DEPTH:
            constant = self.constants.get(value.id)
            node = self._literal(constant, depth + 1) if constant is not None else None
            return node._replace(style=MADE) if node is not None else None
        span = self.places.span(value)
        if isinstance(value, ast.List | ast.Tuple) and depth < MAX_DEPTH:
            items = [self._literal(item, depth + 1) for item in value.elts]
            return Node("sequence", tuple(i for i in items if i is not None), span) if None not in items else None
        try:
            plain = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
        return Node("scalar", plain, span) if plain is None or isinstance(plain, bool | int | float | str) else None

    def _lose_by(self, statement: ast.stmt) -> None:
        """What a statement may set is not known after it."""
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
    """A value that another function assigns: it is told there, and not edited for the sake of this one."""
    return one._replace(value=one.value._replace(style=MADE))
