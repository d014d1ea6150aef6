"""The state of a loaded program, stored as data for the next call, so that it need not be interpreted again."""

from __future__ import annotations

import argparse
import collections
import copyreg
import dataclasses
import enum
import functools
import inspect
import io
import marshal
import operator
import re
import sys
import time
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import packaging.version

from preflight.program import cached_executions, interpreter_state, sources, values, verdict
from preflight.program.annotation_stand_ins import STANDS_IN, standing_in
from preflight.program.argument_parsers import Parser
from preflight.program.attributes import NOTHING
from preflight.program.cached_executions import Unit
from preflight.program.interpreter import Interpreter
from preflight.program.ir import VERSION
from preflight.program.python_callbacks import Bridge, Converter, unknown_type
from preflight.program.sources import FOLDER
from preflight.program.stdlib_allowlist import BUILTINS, MODULES
from preflight.program.values import MISSING, Function, Raised, Value
from preflight.source import cache_folder

try:  # pickle loads its own reader in Python first
    from _pickle import Pickler, PicklingError, Unpickler
except ImportError:
    from pickle import Pickler, PicklingError, Unpickler

PROTOCOL = 4
_OWN: tuple[type, ...] = (
    *(getattr(values, name) for name in "Unknown Perhaps LoadedModules Symbol Lazy Module Scope".split()),
    *(getattr(values, name) for name in "Function Bound Property".split()),
    *(getattr(values, name) for name in "Static ClassMethod Partial Decorator Class Object Super".split()),
    *(verdict.Place, interpreter_state.Note, cached_executions.Unit, sources.Found, Bridge, Converter, Parser),
)
_LIBRARY: tuple[type, ...] = (
    *(argparse._ArgumentGroup, argparse._MutuallyExclusiveGroup, argparse.Namespace, argparse.HelpFormatter),
    *(one for name, one in vars(argparse).items() if isinstance(one, type) and issubclass(one, argparse.Action)),
    *(inspect.Signature, inspect.Parameter, inspect._ParameterKind, inspect._empty),
    *(
        dataclasses.Field,
        types.SimpleNamespace,
        types.GenericAlias,
        collections.OrderedDict,
        collections.defaultdict,
        collections.deque,
    ),
    *(collections.Counter, packaging.version.Version, range, slice, complex, bytearray, set, frozenset, object),
    *(one for one in BUILTINS.values() if isinstance(one, type) and issubclass(one, BaseException)),
)
_VARIABLES = (typing.ForwardRef, typing.TypeVar, typing.ParamSpec)
_TYPING = frozenset(("typing", "types"))
OF_ARGPARSE = "ArgumentParser.__init__.<locals>.identity"
"""The function that argparse takes for the type of an option that states none: a different one in each parser."""


class NotKept(Exception):
    """Raised if a value cannot be stored."""


def _identity(text: str) -> str:
    """The same function, for all parsers."""
    return text


def _generic(origin: Any, arguments: Any) -> Any:
    """A type with parameters."""
    if getattr(origin, "__module__", "") not in _TYPING and not isinstance(origin, type):
        raise NotKept
    return operator.getitem(origin, arguments)


def _union(*arguments: Any) -> Any:
    return functools.reduce(operator.or_, arguments)


def _enumeration(name: str, module: str, bases: tuple[Any, ...], members: list[tuple[str, Any]]) -> Any:
    kind = next(base for base in reversed(bases) if issubclass(base, enum.Enum))
    mixed = [base for base in bases if not issubclass(base, enum.Enum)]
    if not members and kind in (enum.Enum, enum.IntEnum):
        made: Any = types.new_class(name, bases)
    else:
        made = kind(name, members, **({"type": mixed[0]} if mixed else {}))
    made.__module__ = module
    return made


def _native(name: str, module: str, bases: tuple[type, ...]) -> Any:
    return type(name, bases, {"__module__": module})


def _methods(made: Any, methods: dict[str, Any]) -> None:
    for name, method in methods.items():
        setattr(made, name, method)


def _proxy(content: dict[str, Any]) -> Any:
    return types.MappingProxyType(content)


def _raised(error: BaseException, place: verdict.Place, sure: bool, reads: tuple[str, ...]) -> Raised:
    return Raised(error, place, sure=sure, reads=reads)


_MADE: tuple[Any, ...] = (
    *(_generic, _union, _enumeration, _native, _methods, _raised, _proxy, unknown_type, standing_in),
    *_VARIABLES,
    re._compile,  # type: ignore[attr-defined]
)
_BY_NAME = {(one.__module__, one.__qualname__): one for one in (*_OWN, *_LIBRARY, *_MADE)}
_PLAIN = frozenset((*_OWN, *_LIBRARY)) - {Function, dataclasses.Field}


class _Writer(Pickler):
    """stub: the replacement for the body of an uncalled function; None if the body must be stored."""

    def __init__(self, file: io.BytesIO, run: Interpreter, stub: Callable[[Function], Any]) -> None:
        super().__init__(file, PROTOCOL)
        self.dispatch_table = {}
        self._stub = stub
        self._named: dict[int, Any] = {id(one): name for name, one in _named(run).items()}

    def persistent_id(self, value: Any) -> Any:
        """The name of an object that is not stored, but exists."""
        if type(value) is types.FunctionType and value.__qualname__ == OF_ARGPARSE:
            return "identity"
        return self._named.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        """How to recreate a value."""
        kind = type(value)
        if kind is Function:
            return _function(value, self._stub)
        if kind in _PLAIN:
            return NotImplemented
        if isinstance(value, type):
            return _type(value)
        if isinstance(value, enum.Enum):
            return kind, (value.value,)
        if kind is dataclasses.Field:
            parts = {name: getattr(value, name) for name in kind.__slots__ if hasattr(value, name)}
            return _anew(kind, parts)
        if kind is re.Pattern:
            return re._compile, (value.pattern, value.flags)  # type: ignore[attr-defined]
        if kind is types.MappingProxyType:
            return _proxy, (dict(value),)
        if kind is types.UnionType:
            return _union, value.__args__
        if hasattr(value, "__origin__") or kind in _VARIABLES:
            return _typed(value)
        if kind is types.FunctionType:
            return _python_function(value)
        if kind is Raised:
            return _raised, (value.error, value.place, value.sure, value.reads)
        if isinstance(value, BaseException):
            return kind, value.args
        raise NotKept(kind.__name__)


class _Reader(Unpickler):
    def __init__(self, file: io.BytesIO, run: Interpreter) -> None:
        super().__init__(file)
        self._named = _named(run)

    def persistent_load(self, name: Any) -> Any:
        """The object behind a name."""
        return self._named[name]

    def find_class(self, module: str, name: str) -> Any:
        """Types that may be created."""
        return _BY_NAME[module, name]


def written(run: Interpreter, whole: object, stub: Callable[[Function], Any]) -> bytes:
    """Values as data; raises NotKept."""
    file = io.BytesIO()
    try:
        _Writer(file, run, stub).dump(whole)
    except (PicklingError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise NotKept(str(error)[:200]) from None
    return file.getvalue()


def read(run: Interpreter, data: bytes) -> Any:
    """Values from data."""
    return _Reader(io.BytesIO(data), run).load()


def _anew(kind: type, parts: dict[str, Any]) -> Any:
    """Recreate an object from its parts."""
    return getattr(copyreg, "__newobj__"), (kind,), (None, parts)  # noqa: B009


def _named(run: Interpreter) -> dict[Any, Any]:
    """Objects stored by name: those of the interpreter and of Python itself."""
    return {
        **_STANDING,
        "run": run,
        "environment": run.environ,
        "command": run.argv,
    }


_STANDING: dict[Any, Any] = {
    **{
        (module, name): value
        for module, names in {**MODULES, "builtins": BUILTINS}.items()
        for name, value in names.items()
        if not isinstance(value, (str, int, float, bool, tuple))
    },
    "missing": MISSING,
    "absent": dataclasses.MISSING,
    "keyword only": dataclasses.KW_ONLY,
    "nothing": NOTHING,
    "no metadata": dataclasses.field().metadata,
    "identity": _identity,
    "suppressed": argparse.SUPPRESS,  # argparse compares it by identity
    "builtins": BUILTINS,
}


def _function(value: Function, stub: Callable[[Function], Any]) -> Any:
    state = {name: getattr(value, name) for name in Function.__slots__}
    short = stub(value)
    if short is not None:
        state["node"] = (*value.node[:5], short, *value.node[6:])
    return _anew(Function, {**state, "body": None, "active": 0, "twin": None})


def _type(value: type) -> Any:
    if _BY_NAME.get((value.__module__, value.__qualname__)) is value:
        return NotImplemented
    if STANDS_IN in vars(value):
        return standing_in, (value.__name__,)
    if issubclass(value, enum.Enum):
        members = [(name, one.value) for name, one in value.__members__.items()]
        return _enumeration, (value.__name__, value.__module__, value.__bases__, members)
    if not issubclass(value, (BaseException, argparse.Action)) and value.__bases__ != (object,):
        raise NotKept(value.__name__)
    methods = {name: one for name, one in vars(value).items() if isinstance(one, Bridge)}
    own = {name for name in vars(value) if not name.startswith("__")} - methods.keys()
    if own:
        raise NotKept(value.__name__)
    return _native, (value.__name__, value.__module__, value.__bases__), methods, None, None, _methods


def _typed(value: Any) -> Any:
    if isinstance(value, typing.ForwardRef):
        return typing.ForwardRef, (value.__forward_arg__,)
    if not hasattr(value, "__origin__"):
        return type(value), (value.__name__,)
    found = value.__reduce__()
    if isinstance(found, tuple) and found[0] in (operator.getitem, types.GenericAlias):
        return (_generic if found[0] is operator.getitem else found[0], found[1])
    raise NotKept(repr(value)[:80])


def _python_function(value: Any) -> Any:
    if _BY_NAME.get((value.__module__, value.__qualname__)) is value:
        return NotImplemented
    raise NotKept(value.__qualname__)


FORM = 1
"""Increases with every change of the cached data."""
MOST_STEPS = 500_000
"""Steps after which nothing is cached: no trainer needs even a fifth of them."""
LARGEST = 16 << 20
"""Maximum number of cached bytes."""


class Driver(Protocol):
    """The part that drives a program, and reads some state once in addition to its modules."""

    def to_keep(self) -> tuple[Value, ...]:
        """The loaded modules."""

    def take_up(self, kept: tuple[Value, ...]) -> None:
        """Continue from the state that another program has read."""


class KeptState:
    """The stored state of one program for one machine. about: all of its dependencies besides files and environment."""

    def __init__(self, run: Interpreter, driver: Driver, about: str, code: str) -> None:
        self.run, self.driver = run, driver
        self._about = f"{FORM} {VERSION} {sys.version_info[:3]} {cache_folder.digest(code)} {about}"
        self._had: frozenset[str] = frozenset()
        self._bodies = run.sources.bodies

    def restore(self, environ: Mapping[str, Value], world: int | None, argv: Sequence[str]) -> bool:
        """Load the state stored by an earlier call, if it is still valid."""
        run, driver = self.run, self.driver
        try:
            asked = marshal.loads(cache_folder.read_data(self._name("asked")) or b"")
            run.units["asked"] = Unit()
            run.units["asked"].asked.update(asked)
            known = run.environment(environ, world, argv)
            del run.units["asked"]
            kept = cache_folder.read_data(self._name(repr(known)))
            files, data = marshal.loads(kept or b"")
        except (ValueError, EOFError, TypeError):
            return False
        if not run.sources.restore(files):
            return False
        try:
            whole = read(run, data)
        except Exception:  # for another library than the one it was created with
            return False
        run.modules.update(whole["modules"])
        run.symbols.update(whole["symbols"])
        run.units.update(whole["units"])
        run.enum_members.update(whole["enumerations"])
        run.field_types.update({id(field): held for field, held in whole["fields"]})
        run.kept.extend(field for field, _ in whole["fields"])
        run.lasting.update({id(container): (container, cause) for container, cause in whole["blurred"]})
        driver.take_up(whole["driver"])
        self._had = frozenset(run.units)
        return True

    def lacks_some(self) -> bool:
        """Whether more has been read than is stored."""
        more = not self.run.units.keys() <= self._had or self._bodies != self.run.sources.bodies
        return more and self.run.steps < MOST_STEPS

    def keep(self, environ: Mapping[str, Value], world: int | None, argv: Sequence[str]) -> None:
        """Store the state."""
        run = self.run
        self._had, self._bodies = frozenset(run.units), run.sources.bodies
        run.begin()
        fields = {id(field): field for field in run.kept}
        whole = {
            "modules": run.modules,
            "symbols": run.symbols,
            "units": run.units,
            "enumerations": run.enum_members,
            "fields": [(field, run.field_types[at]) for at, field in fields.items() if at in run.field_types],
            "blurred": list(run.lasting.values()),
            "driver": self.driver.to_keep(),
        }
        try:
            data = written(run, whole, self._stub)
        except NotKept:
            return
        known = run.environment(environ, world, argv)
        if len(data) < LARGEST:
            cache_folder.write_data(self._name("asked"), marshal.dumps(sorted(known)))
            name = self._name(repr(known))
            cache_folder.write_data(name, marshal.dumps((run.sources.state(), data)))
            cache_folder.sweep(FOLDER, time.time())

    def _name(self, what: str) -> str:
        return f"{FOLDER}/{cache_folder.digest(f'{self._about} {what}')}.json"

    def _stub(self, function: Function) -> Any:
        """The place of the body of a function that no call has called; None if it must be stored."""
        node, scope = function.node, function.scope
        if node[0] != "FunctionDef" or function.body is not None or scope.kind not in ("module", "class"):
            return None
        if isinstance(node[5], tuple):
            return node[5]
        return (scope.module.file,) if scope.module.file in self.run.sources.compiled else None
