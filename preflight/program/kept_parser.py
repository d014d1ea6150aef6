"""A built command line parser as data, from which its options are read while the files they come from are the same.

Building it runs some 50,000 steps where options are made from dataclasses; the data is read in a few milliseconds.
"""

from __future__ import annotations

import argparse
import base64
import enum
import marshal
import sys
import zlib
from typing import Any

from preflight.program.allowed import BUILTINS, MODULES
from preflight.program.interpreter import Interpreter
from preflight.program.ir import VERSION, body_of
from preflight.program.sources import FOLDER
from preflight.program.values import (
    Builtin,
    Class,
    Function,
    Lazy,
    Module,
    Names,
    Raised,
    Scope,
    Symbol,
    Unknown,
    Value,
)
from preflight.source import cache

FORM = 2
"""Goes up with every change of the data."""


_TABLES = {**MODULES, "builtins": BUILTINS}
_LIBRARY = {id(value): (module, name) for module, names in _TABLES.items() for name, value in names.items()}


class NotKept(Exception):
    """A value has no form as data."""


class NeedsBuilding(Exception):
    """An option is used whose type is not kept as data."""


def name_of(run: Interpreter, subject: str, environment: str) -> str:
    """Under which name a parser is kept: for one tree, machine and environment."""
    whole = f"{FORM} {VERSION} {sys.version_info[:2]} {subject} {environment} {run.facts.machine!r}"
    return f"{FOLDER}/{cache.digest(whole)}.json"


def keep(run: Interpreter, name: str, calls: list[tuple[int, str, tuple[Value, ...], Names]]) -> None:
    """Keep the calls that built a parser, if all of them can be data."""
    try:
        rows = [(at, kind, given, _encoded_names(run, named)) for at, kind, given, named in calls]
        data = marshal.dumps((run.sources.digests(), rows))
    except (NotKept, ValueError):
        return
    cache.write(name, base64.b64encode(zlib.compress(data, 3)).decode("ascii"))


def rebuild(run: Interpreter, name: str, parser: Any) -> bool:
    """Add the kept options to an empty parser; False where none are kept for these files."""
    text = cache.read(name)
    if text is None:
        return False
    files, rows = marshal.loads(zlib.decompress(base64.b64decode(text)))
    if not run.sources.same_files(files):
        return False
    containers: list[Any] = [parser]
    for at, kind, given, named in rows:
        made = getattr(containers[at], kind)(*given, **{key: _decoded(run, value) for key, value in named.items()})
        if kind != "add_argument":
            containers.append(made)
    return True


def _encoded_names(run: Interpreter, named: Names) -> dict[str, Any]:
    found = {}
    for key, value in named.items():
        try:
            found[key] = _encoded(run, value)
        except NotKept:
            if key != "type":
                raise
            found[key] = ("unkept",)
    if found.get("type") == ("unkept",):
        found.pop("choices", None)
    return found


def _encoded(run: Interpreter, value: Value) -> Any:
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, enum.Enum)):
        return ("plain", value)
    if isinstance(value, (list, tuple)):
        return ("list" if isinstance(value, list) else "tuple", [_encoded(run, one) for one in value])
    if isinstance(value, Symbol):
        return ("symbol", value.name)
    if isinstance(value, Unknown):
        return ("unknown", sorted(value.facts), sorted(value.gaps))
    if isinstance(value, range):
        return ("range", value.start, value.stop, value.step)
    if (library := _LIBRARY.get(id(value))) is not None:
        return ("library", *library)
    if isinstance(value, enum.Enum):
        return ("member", *_named(run, type(value).__module__, type(value).__name__, type(value)), value.name)
    if isinstance(value, Function):
        return _encoded_function(run, value)
    if isinstance(value, Class):
        return ("named", *_named(run, value.module.name, value.name, value))
    if isinstance(value, type) and issubclass(value, argparse.Action):
        return ("class", *_named(run, value.__module__, value.__name__, value))
    raise NotKept


def _encoded_function(run: Interpreter, value: Function) -> Any:
    module = value.scope.module.name
    try:
        return ("named", *_named(run, module, value.qualified, value))
    except NotKept:
        if value.defaults or value.keyword_defaults or _uses(value.node, value.scope):
            raise
        return ("code", module, value.node, value.name)


def _uses(node: Any, scope: Scope) -> bool:
    """Whether a function uses a name of the function around it."""
    local: set[str] = set()
    holder: Scope | None = scope
    while holder is not None and holder.kind != "module":
        local |= holder.names.keys()
        holder = holder.outer
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, bytes):
            stack.extend(body_of(one))
        elif isinstance(one, tuple):
            if len(one) == 4 and one[0] == "Name" and one[3] in local:
                return True
            stack.extend(one)
    return False


def _code(run: Interpreter, module: str, node: Any, name: str) -> Any:
    """A function of which only its own code is kept."""

    def call(text: str) -> Any:
        loaded = run.load(module)
        if not isinstance(loaded, Module):
            raise NeedsBuilding(text)
        return run.call(Function(node, Scope(loaded.names, None, loaded, "module", ""), name), [text], {})

    return run.converter(Builtin(name, call))


def _named(run: Interpreter, module: str, name: str, value: Value) -> tuple[str, str]:
    """Where a value is found again by its name."""
    holder = run.modules.get(module)
    if not isinstance(holder, Module) or holder.names.get(name) is not value:
        raise NotKept
    return module, name


def _decoded(run: Interpreter, data: Any) -> Any:
    kind, *rest = data
    if kind == "plain":
        return rest[0]
    if kind in ("list", "tuple"):
        found = [_decoded(run, one) for one in rest[0]]
        return found if kind == "list" else tuple(found)
    if kind == "symbol":
        return run.symbol(rest[0])
    if kind == "unknown":
        return Unknown(rest[0], rest[1])
    if kind == "range":
        return range(*rest)
    if kind == "library":
        return _TABLES[rest[0]][rest[1]]
    if kind == "unkept":
        return _unkept
    if kind == "code":
        return _code(run, rest[0], rest[1], rest[2])
    if kind == "named":
        return run.converter(Lazy(rest[0], rest[1]))
    try:
        with run.permanent():
            value = run.imported(rest[0], rest[1])
    except Raised as raised:
        raise NeedsBuilding(str(raised)) from None
    return value if kind == "class" else value[rest[2]]


def _unkept(text: str) -> Any:
    raise NeedsBuilding(text)
