"""The conditions under which functions of a front end refuse a config, as expressions over the keys of the config.

Read from syntax trees: nothing is imported or run. Names are followed through assignments, branches, loops over
literals and calls of functions that only return a value; anything else in a condition is unknown ("?"), and a refusal
that depends on it is left out. A condition is a constant, or a list that begins with its operator: "key" (a path),
"get" (a path and a default), "has" (a path), or a name in preflight/frontends/refusals.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

UNKNOWN: list[Any] = ["?"]
"""A value that is not read."""
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Div: "/", ast.Mod: "%"}
COMPARED = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "==",
    ast.IsNot: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
}
CALLED = ("len", "int", "float", "bool", "str", "max", "min")
METHODS = ("startswith", "endswith", "lower")
IDENTITIES = ("frozenset", "set", "tuple", "list", "cast", "omega_conf_to_dataclass", "to_abspath")
"""Functions that return the same values."""
TYPES = ("int", "float", "bool", "str", "list", "tuple", "dict")
RETURNS, RAISES = "returns", "raises"
MOST_ITEMS, MOST_DEPTH, MOST_NODES = 8, 4, 80
Env = dict[str, Any]


class Place(NamedTuple):
    """A function whose refusals are read. roots: its names with the section that each holds, or an expression; when:
    the conditions of its call; sections: the sections of its keys, if these begin with a dot."""

    path: str
    function: str
    roots: Mapping[str, Any]
    when: tuple[Any, ...] = ()
    sections: tuple[str, ...] = ()


class Refusal(NamedTuple):
    """A refusal: its file and line, and the conditions that all hold where it is raised. test: the text of the last."""

    path: str
    line: int
    function: str
    test: str
    when: tuple[Any, ...]
    sections: tuple[str, ...]


def at(path: str) -> list[Any]:
    """A section or a key."""
    return ["key", path]


class Reader:
    """Reads functions. tree: the syntax tree of a file; find: the function of that name and its file, for calls; names:
    constants by name, members of enumerations as Class.MEMBER."""

    def __init__(
        self,
        tree: Callable[[str], ast.Module],
        find: Callable[[str], ast.FunctionDef | None],
        names: Mapping[str, Any],
    ) -> None:
        self.tree, self.find, self.names = tree, find, names

    def refusals(self, place: Place) -> Iterator[Refusal]:
        """The refusals of a function; none if the release lacks it."""
        node = function(self.tree(place.path), place.function)
        if node is None:
            return
        found: list[tuple[int, str, tuple[Any, ...]]] = []
        env = {name: at(root) if isinstance(root, str) else root for name, root in place.roots.items()}
        self._walk(node.body, env, [], found)
        for line, test, when in found:
            conditions = tuple(one for one in map(tidy, flat([*place.when, *when])) if one is not True)
            known = UNKNOWN not in conditions and False not in conditions and size(conditions) <= MOST_NODES
            if known and any(map(has_key, conditions[-1:])):
                yield Refusal(place.path, line, place.function, test, conditions, place.sections)

    def _walk(self, body: Sequence[ast.stmt], env: Env, when: list[Any], found: list[Any]) -> str:
        """Follow statements; RETURNS or RAISES if they always end so, otherwise "". Changes env and when."""
        for one in body:
            if isinstance(one, ast.Raise):
                found.append((one.lineno, "", tuple(when)))
                return RAISES
            if isinstance(one, ast.Return | ast.Continue | ast.Break):
                return RETURNS
            if isinstance(one, ast.Assert):
                test = self.value(one.test, env)
                found.append((one.lineno, ast.unparse(one.test), (*when, negated(test))))
            elif isinstance(one, ast.If):
                if ends := self._branch(one, env, when, found):
                    return ends
            elif isinstance(one, ast.Assign | ast.AnnAssign):
                self._assign(one, env)
            elif isinstance(one, ast.With):
                if ends := self._walk(one.body, env, when, found):
                    return ends
            elif isinstance(one, ast.For) and (items := _literals(one.iter)) and isinstance(one.target, ast.Name):
                for item in items:
                    self._walk(one.body, {**env, one.target.id: item}, list(when), found)
                lose(one.body, env)
            elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
                self._set(one.value, env)
            else:
                lose([one], env)
        return ""

    def _branch(self, one: ast.If, env: Env, when: list[Any], found: list[Any]) -> str:
        test = self.value(one.test, env)
        yes, no = dict(env), dict(env)
        begun = len(found)
        ends = self._walk(one.body, yes, [*when, test], found)
        for at_, (line, text, conditions) in enumerate(found[begun:], begun):
            if not text:
                found[at_] = (line, ast.unparse(one.test), conditions)
        begun = len(found)
        other = self._walk(one.orelse, no, [*when, negated(test)], found)
        for at_, (line, text, conditions) in enumerate(found[begun:], begun):
            if not text:
                found[at_] = (line, f"not ({ast.unparse(one.test)})", conditions)
        if ends and other:
            return RAISES if ends == other == RAISES else RETURNS
        merged = no if ends else yes if other else _merged(test, yes, no)
        env.clear()
        env.update(merged)
        if ends == RETURNS:  # after a refusal the run is lost anyway
            when.append(negated(test))
        elif other == RETURNS:
            when.append(test)
        return ""

    def _assign(self, one: ast.Assign | ast.AnnAssign, env: Env) -> None:
        targets = one.targets if isinstance(one, ast.Assign) else [one.target]
        value = self.value(one.value, env) if one.value is not None else UNKNOWN
        for target in targets:
            if isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
                place = UNKNOWN if isinstance(target, ast.Name) else self.value(target, env)
                env[f"@{place[1]}" if is_section(place) else ast.unparse(target)] = value
            else:
                lose([one], env)

    def _set(self, call: ast.Call, env: Env) -> None:
        """object.__setattr__(self, name, value)."""
        if ast.unparse(call.func).endswith("__setattr__") and len(call.args) == 3:
            name = call.args[1]
            if isinstance(name, ast.Constant):
                place = below(self.value(call.args[0], env), str(name.value))
                text = f"@{place[1]}" if is_section(place) else f"{ast.unparse(call.args[0])}.{name.value!s}"
                env[text] = self.value(call.args[2], env)

    def value(self, node: ast.expr, env: Env, depth: int = 0) -> Any:
        """An expression over the keys of the config."""
        text = ast.unparse(node)
        if text in env:
            return env[text]
        if isinstance(node, ast.Constant):
            return UNKNOWN if isinstance(node.value, bytes | complex) or node.value is ... else node.value
        if text in self.names:
            known = self.names[text]
            return ["list", *known] if isinstance(known, list) else known
        match node:
            case (
                ast.Attribute(value=inner, attr=name) | ast.Subscript(value=inner, slice=ast.Constant(value=str(name)))
            ):
                found = below(self.value(inner, env, depth), name)
                return env.get(f"@{found[1]}", found) if is_section(found) else found
            case ast.BoolOp(op=op, values=values):
                return [_word(op), *(self.value(one, env, depth) for one in values)]
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return negated(self.value(inner, env, depth))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                value = self.value(inner, env, depth)
                return -value if isinstance(value, int | float) else UNKNOWN
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                return [BINARY[type(op)], self.value(left, env, depth), self.value(right, env, depth)]
            case ast.Compare():
                return self._compared(node, env, depth)
            case ast.IfExp(test=test, body=body, orelse=other):
                return ["if", *(self.value(one, env, depth) for one in (test, body, other))]
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return ["list", *(self.value(one, env, depth) for one in items)]
            case ast.Dict(keys=[]):
                return ["dict"]
            case ast.Call():
                return self._called(node, env, depth)
        return UNKNOWN

    def _compared(self, node: ast.Compare, env: Env, depth: int) -> Any:
        parts = []
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            word = COMPARED.get(type(op), "?")
            one, other = self.value(left, env, depth), self.value(right, env, depth)
            parts.append([word, one, other] if word != "?" else UNKNOWN)
        return parts[0] if len(parts) == 1 else ["and", *parts]

    def _called(self, node: ast.Call, env: Env, depth: int) -> Any:
        name = ast.unparse(node.func)
        arguments = [self.value(one, env, depth) for one in node.args]
        given = {str(word.arg): self.value(word.value, env, depth) for word in node.keywords}
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and arguments:
            return _optional(self.value(node.func.value, env, depth), arguments, given)
        if name == "getattr" and len(arguments) == 2:
            return below(arguments[0], arguments[1]) if isinstance(arguments[1], str) else UNKNOWN
        if name in ("getattr", "OmegaConf.select") and len(arguments) > 1:
            return _optional(arguments[0], arguments[1:], given)
        if name in IDENTITIES and arguments:
            return arguments[-1] if name == "cast" else arguments[0]
        if name == "isinstance":
            kinds = {part.strip() for part in ast.unparse(node.args[1]).strip("()").replace("|", ",").split(",")}
            return ["isinstance", arguments[0], *sorted(kinds)] if kinds <= {*TYPES} else UNKNOWN
        if name in CALLED and arguments and not given:
            return [name, *arguments]
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            return [node.func.attr, self.value(node.func.value, env, depth), *arguments]
        called = self.find(name) if depth < MOST_DEPTH else None
        if called is None or called.args.vararg or any(isinstance(one, ast.Starred) for one in node.args):
            return UNKNOWN
        own = [one.arg for one in (*called.args.args, *called.args.kwonlyargs)]
        inner: Env = {**dict(zip(own, arguments, strict=False)), **given}
        return self._returned(called.body, inner, depth + 1)

    def _returned(self, body: Sequence[ast.stmt], env: Env, depth: int) -> Any:
        """The value that statements return, if they only branch, assign and return."""
        for at_, one in enumerate(body):
            if isinstance(one, ast.Return):
                return self.value(one.value, env, depth) if one.value is not None else None
            if isinstance(one, ast.If):
                after = body[at_ + 1 :]
                test = self.value(one.test, env, depth)
                yes = self._returned([*one.body, *after], dict(env), depth)
                no = self._returned([*one.orelse, *after], dict(env), depth)
                return ["if", test, yes, no]
            if isinstance(one, ast.Assign | ast.AnnAssign):
                self._assign(one, env)
            elif not isinstance(one, ast.Expr | ast.ImportFrom | ast.Import):
                return UNKNOWN
        return None


def function(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """A function of a module, or Class.method."""
    body: Sequence[ast.stmt] = tree.body
    *classes, last = name.split(".")
    for part in classes:
        inner = next((one for one in body if isinstance(one, ast.ClassDef) and one.name == part), None)
        if inner is None:
            return None
        body = inner.body
    return next((one for one in body if isinstance(one, ast.FunctionDef) and one.name == last), None)


def is_section(value: Any) -> bool:
    """Whether an expression is a place in the config."""
    return isinstance(value, list) and value[:1] in (["key"], ["get"]) and len(value) > 1


def below(value: Any, name: str) -> Any:
    """A key of a section."""
    if not is_section(value):
        return UNKNOWN
    path = f"{value[1]}{name}" if value[1] in ("", ".") else f"{value[1]}.{name}"
    return ["key", path] if value[0] == "key" else ["get", path, ["dict"]]


def _optional(section: Any, arguments: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """A key that may be missing, with its default."""
    name = arguments[0]
    default = given.get("default", arguments[1] if len(arguments) > 1 else None)
    if section == ["dict"]:
        return default
    if isinstance(name, str) and isinstance(section, list) and section[:1] == ["or"] and section[-1] == ["dict"]:
        section = section[1]  # (x or {}).get(…)
    if not isinstance(name, str) or not is_section(section):
        return UNKNOWN
    return ["get", below(section, name)[1], default]


def negated(value: Any) -> Any:
    """The opposite of a condition."""
    if value == UNKNOWN:
        return UNKNOWN
    if isinstance(value, list) and value and value[0] == "not":
        return value[1]
    return ["not", value]


def flat(conditions: Iterable[Any]) -> Iterator[Any]:
    """Conditions without conjunctions."""
    for one in conditions:
        if isinstance(one, list) and one[:1] == ["and"]:
            yield from flat(one[1:])
        elif isinstance(one, list) and one[:1] == ["not"] and isinstance(one[1], list) and one[1][:1] == ["or"]:
            yield from flat(negated(part) for part in one[1][1:])
        elif one is not True:
            yield one


def tidy(value: Any) -> Any:
    """An expression with its constant parts computed; UNKNOWN if it depends on an unknown part."""
    if not isinstance(value, list) or value[:1] in (["key"], ["?"], ["dict"]):
        return value
    if value[0] == "get":
        return [*value[:2], tidy(value[2])]
    parts = [tidy(one) for one in value[1:]]
    if value[0] in ("and", "or"):
        stops = value[0] == "or"
        if any(one is stops for one in parts):
            return stops
        left = [one for one in parts if one is not (not stops)]
        return left[0] if len(left) == 1 else [value[0], *left] if left else not stops
    if value[0] == "if":
        if isinstance(parts[0], bool):
            return parts[1] if parts[0] else parts[2]
        return UNKNOWN if parts[0] == UNKNOWN or parts[1] == parts[2] == UNKNOWN else ["if", *parts]
    if value[0] == "not" and isinstance(parts[0], bool):
        return not parts[0]
    if value[0] != "list" and UNKNOWN in parts:
        return UNKNOWN
    if value[0] == "in" and isinstance(parts[1], list) and parts[1][:1] == ["list"] and parts[0] in parts[1][1:]:
        return True
    if value[0] in ("==", "!=") and not any(isinstance(one, list) for one in parts):
        return (parts[0] == parts[1]) is (value[0] == "==")
    return [value[0], *parts]


def has_key(value: Any) -> bool:
    """Whether an expression reads the config."""
    if not isinstance(value, list):
        return False
    return value[:1] in (["key"], ["get"], ["has"]) or any(has_key(one) for one in value[1:])


def size(value: Any) -> int:
    """The number of parts of an expression."""
    return 1 + sum(map(size, value)) if isinstance(value, list | tuple) else 1


def lose(body: Iterable[ast.stmt], env: Env) -> None:
    """Forget the names that statements change in ways that are not followed."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
                env[ast.unparse(node)] = UNKNOWN


def _literals(node: ast.expr) -> list[Any]:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return []
    return list(value) if isinstance(value, list | tuple) and len(value) <= MOST_ITEMS else []


def _merged(test: Any, yes: Env, no: Env) -> Env:
    """The names after a branch; a key of the config that only one of its sides sets keeps its value on the other."""
    both = {**no, **yes}
    kept = {name: at(name[1:]) if name.startswith("@") else UNKNOWN for name in both}
    found = {}
    for name in both:
        one, other = yes.get(name, kept[name]), no.get(name, kept[name])
        found[name] = one if one == other else UNKNOWN if test == UNKNOWN else ["if", test, one, other]
    return found


def _word(op: ast.boolop) -> str:
    return "and" if isinstance(op, ast.And) else "or"


def read(one: Refusal) -> list[str]:
    """The keys that the last condition of a refusal reads."""
    return [*_keys(one.when[-1])]


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, list) and value:
        if value[0] in ("key", "get", "has"):
            yield value[1]
        else:
            for part in value[1:]:
                yield from _keys(part)


def rows(found: Iterable[Refusal]) -> list[list[Any]]:
    """Refusals as the contract stores them: file:line, conditions, and sections if there are any; without those whose
    last condition is a fixed value."""
    made: list[list[Any]] = []
    for one in found:
        row = [f"{one.path}:{one.line}", list(one.when), *([list(one.sections)] if one.sections else [])]
        if row not in made:
            made.append(row)
    return made
