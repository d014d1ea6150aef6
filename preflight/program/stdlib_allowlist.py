"""The functions, types and attributes of Python's standard library that the interpreter may use, listed by identity.

Everything else in the standard library is a name without a value. None of these opens a file, imports, runs code or
reaches the internals of an object.
"""

from __future__ import annotations

import abc
import argparse
import ast
import builtins
import collections
import collections.abc
import copy
import dataclasses
import enum
import functools
import inspect
import itertools
import json
import math
import numbers
import operator
import re
import shlex
import signal
import string
import textwrap
import types
import typing
from typing import Any

import packaging.version

_BUILTINS = """abs all any bin bool bytes callable chr classmethod delattr dict divmod enumerate eval filter float
format frozenset getattr globals hasattr hash hex id int isinstance issubclass iter len list locals map max min next
object oct open ord pow print property range repr reversed round set setattr slice sorted staticmethod str sum super
tuple type vars zip dir __import__ compile exec input NotImplemented Ellipsis"""
_EXPORTS: dict[Any, str] = {
    math: """cos sin tan acos asin atan atan2 cosh sinh tanh hypot degrees radians log1p expm1 fmod modf copysign dist
        fsum pow tau nan ceil floor sqrt log log2 log10 exp prod gcd lcm isclose isnan isinf isfinite inf pi e
        fabs trunc copysign""",
    json: "loads dumps",
    re: """compile match search fullmatch sub split findall escape IGNORECASE I VERBOSE X DOTALL S MULTILINE M
        Pattern Match""",
    itertools: """cycle pairwise chain product accumulate repeat islice zip_longest groupby combinations permutations
        starmap""",
    functools: "partial wraps lru_cache cache reduce total_ordering cached_property",
    operator: "mul add sub itemgetter attrgetter truediv floordiv mod eq ne lt le gt ge",
    collections: "OrderedDict defaultdict namedtuple Counter deque",
    collections.abc: "Callable Iterable Iterator Mapping Sequence Hashable Generator MutableMapping Set",
    copy: "copy deepcopy",
    string: "ascii_letters ascii_lowercase ascii_uppercase digits",
    textwrap: "dedent indent",
    types: "SimpleNamespace UnionType FunctionType MethodType GenericAlias NoneType ModuleType LambdaType",
    numbers: "Number Real Integral",
    shlex: "split",
    signal: "Signals SIGTERM SIGINT SIGHUP SIGUSR1 SIGUSR2",
    enum: "Enum IntEnum Flag IntFlag auto unique EnumMeta StrEnum",
    dataclasses: """dataclass field fields MISSING asdict replace is_dataclass Field make_dataclass InitVar KW_ONLY
        astuple""",
    abc: "ABC ABCMeta abstractmethod",
    argparse: """ArgumentParser Namespace Action ArgumentTypeError ArgumentError HelpFormatter REMAINDER SUPPRESS
        ArgumentDefaultsHelpFormatter RawTextHelpFormatter RawDescriptionHelpFormatter BooleanOptionalAction
        ZERO_OR_MORE OPTIONAL ONE_OR_MORE _ArgumentGroup _StoreAction _StoreTrueAction _StoreFalseAction
        _StoreConstAction""",
    inspect: """getsource cleandoc isclass isfunction signature Parameter getdoc ismethod getmembers iscoroutinefunction
        isabstract currentframe getmodule""",
    ast: "parse literal_eval Module ClassDef AnnAssign Name Expr Constant Assign",
    packaging.version: "Version parse InvalidVersion",
}


def _exports() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for module, names in _EXPORTS.items():
        found[module.__name__] = {name: getattr(module, name) for name in names.split() if hasattr(module, name)}
    found["typing"] = {name: getattr(typing, name) for name in typing.__all__ if name != "TYPE_CHECKING"}
    found["typing_extensions"] = found["typing"]
    return found


MODULES: dict[str, dict[str, Any]] = _exports()
"""Module of the standard library → the names that the program may use."""
BUILTINS: dict[str, Any] = {
    **{name: getattr(builtins, name) for name in _BUILTINS.split()},
    **{
        name: value
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    },
    "__debug__": True,
}
CALLABLE: frozenset[int] = frozenset(
    id(value) for names in (*MODULES.values(), BUILTINS) for value in names.values() if callable(value)
) - {id(one) for one in (builtins.open, builtins.exec, builtins.compile, builtins.__import__, builtins.input)}
"""Functions that may be called, by identity."""


def _public(kind: type, without: str = "") -> frozenset[str]:
    return frozenset(name for name in dir(kind) if not name.startswith("_")) - set(without.split())


_FIELDS = "name type default default_factory init metadata kw_only repr compare"
_ACTION = "option_strings dest nargs const default type choices required help metavar"
_GROUP = "add_argument add_argument_group add_mutually_exclusive_group set_defaults get_default title description"
ATTRIBUTES: dict[type, frozenset[str]] = {
    str: _public(str, "format_map"),
    bytes: frozenset(("decode",)),
    int: frozenset(("bit_length", "real", "imag", "numerator", "denominator")),
    float: frozenset(("is_integer", "real")),
    list: _public(list),
    dict: _public(dict),
    tuple: _public(tuple),
    set: _public(set),
    frozenset: _public(frozenset),
    collections.deque: frozenset(("append", "appendleft", "pop", "popleft", "extend")),
    collections.Counter: frozenset(("most_common", "elements")),
    re.Pattern: frozenset(("match", "search", "fullmatch", "sub", "split", "findall", "pattern")),
    re.Match: frozenset(("group", "groups", "groupdict", "start", "end", "span", "string")),
    packaging.version.Version: _public(packaging.version.Version),
    dataclasses.Field: frozenset(_FIELDS.split()),
    argparse.ArgumentParser: frozenset(
        f"""{_GROUP} parse_args parse_known_args error exit format_help print_help format_usage prog usage epilog
        _actions _option_string_actions _action_groups _mutually_exclusive_groups _group_actions add_subparsers
        conflict_handler""".split()
    ),
    argparse._ArgumentGroup: frozenset(f"{_GROUP} _group_actions container".split()),
    argparse.Action: frozenset(_ACTION.split()),
    BaseException: frozenset(("args", "msg", "code", "name")),
    enum.Enum: frozenset(("name", "value", "_value_", "_name_")),
    slice: frozenset(("start", "stop", "step")),
    inspect.Signature: frozenset(("parameters", "bind", "bind_partial")),
    inspect.BoundArguments: frozenset(("arguments", "args", "kwargs", "apply_defaults")),
    inspect.Parameter: frozenset(
        "name default annotation kind empty POSITIONAL_ONLY POSITIONAL_OR_KEYWORD VAR_POSITIONAL KEYWORD_ONLY "
        "VAR_KEYWORD".split()
    ),
    types.MappingProxyType: frozenset(("get", "items", "keys", "values")),
    range: frozenset(("start", "stop", "step", "index", "count")),
}
"""Type → the attributes of its values that the program may read; those of the first type that fits are meant."""
ON_TYPES: dict[type, frozenset[str]] = {
    dict: frozenset(("fromkeys",)),
    str: frozenset(("lower", "upper", "strip", "join", "split", "startswith")),
    itertools.chain: frozenset(("from_iterable",)),
    inspect.Parameter: ATTRIBUTES[inspect.Parameter],
}
"""The same for types themselves."""


def readable(owner: Any, name: str) -> bool:
    """Whether the program may read an attribute of a Python value."""
    if isinstance(owner, type):
        return any(name in names for kind, names in ON_TYPES.items() if issubclass(owner, kind))
    return name in _of_kind(type(owner)) or (isinstance(owner, ast.AST) and name in owner._fields)


def _of_kind(kind: type) -> frozenset[str]:
    """The readable attributes of values of a type, which may be created by the program."""
    if (known := ATTRIBUTES.get(kind)) is not None and kind not in _DERIVED:
        return known
    return frozenset().union(*(names for one, names in ATTRIBUTES.items() if issubclass(kind, one)))


_DERIVED = frozenset(
    kind for kind in ATTRIBUTES if any(kind is not one and issubclass(kind, one) for one in ATTRIBUTES)
)
