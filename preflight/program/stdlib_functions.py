"""Functions and methods of Python's own library, run within limits on known values."""

from __future__ import annotations

import argparse
import collections
import enum
import inspect
import re
import types
from collections.abc import Callable

from preflight.program import numpy_functions
from preflight.program.decision_recording_integers import settled
from preflight.program.layer_reuse import Layers
from preflight.program.machine_facts import Size, SizeText
from preflight.program.operation_limits import LENGTH, bounded, safe_format, safe_pattern, safe_template
from preflight.program.operators import ARITHMETIC, COMPARED
from preflight.program.statements import Statements
from preflight.program.stdlib_allowlist import CALLABLE, readable
from preflight.program.values import (
    Bound,
    Builtin,
    Class,
    Decorator,
    Exhausted,
    Function,
    Module,
    Names,
    Object,
    Partial,
    Perhaps,
    Property,
    Raised,
    Super,
    Symbol,
    Unknown,
    Value,
    both,
)
from preflight.source.typing_without_import import Any

OPAQUE = (Unknown, Symbol, Object, Class, Function, Bound, Partial, Module, Property, Super, Decorator, Builtin)
SIZED = (str, list, tuple, dict, set, frozenset)
WIDE = frozenset(("ljust", "rjust", "center", "zfill", "expandtabs"))
CHANGING = {
    list: frozenset("append extend insert pop remove clear sort reverse".split()),
    dict: frozenset("pop update setdefault clear popitem".split()),
    set: frozenset(
        """add discard remove update clear pop difference_update intersection_update
    symmetric_difference_update""".split()
    ),
    collections.deque: frozenset("append appendleft pop popleft extend".split()),
}
MATCHING = frozenset((re.match, re.search, re.fullmatch, re.sub, re.split, re.findall))
ON_PATTERN = frozenset(("match", "search", "fullmatch", "sub", "split", "findall"))
ON_NUMBERS = frozenset((*ARITHMETIC.values(), *COMPARED.values()))
"""Operations that accept a traced number."""
Special = Callable[[list[Value], Names], Value]


class Natives(Statements):
    """How a function of Python is called."""

    layers: Layers | None
    enum_members: dict[type, Names]
    specials: dict[int, Special]

    def native(self, function: Any, arguments: list[Value], keywords: Names | None = None) -> Value:
        """Run a Python function on known values."""
        if self.layers is not None and function not in ON_NUMBERS:
            arguments = [settled(one) for one in arguments]
        try:
            return function(*arguments, **(keywords or {}))
        except (Raised, Exhausted, RecursionError, MemoryError):
            raise
        except Exception as error:
            sure = not isinstance(error, (ImportError, NameError)) and not any(map(_holds_opaque, arguments))
            raise self.failure(error, sure=sure) from None

    def call_native(self, function: Any, arguments: list[Value], keywords: Names) -> Value:
        """Call a Python object."""
        special = self.specials.get(id(function)) if not isinstance(function, types.MethodType) else None
        if special is not None:
            try:
                return special(arguments, keywords)
            except (IndexError, ValueError):  # fewer arguments than it takes
                raise self.failure(TypeError("a call with too few arguments"), sure=False) from None
        receiver = getattr(function, "__self__", None)
        if isinstance(function, type):
            return self._construct(function, arguments, keywords)
        if receiver is not None and not isinstance(receiver, types.ModuleType):
            return self._method(function, receiver, arguments, keywords)
        if id(function) not in CALLABLE:
            return self.lost(f"call of {getattr(function, '__name__', function)!s}")
        return self._plain(function, arguments, keywords)

    def _construct(self, kind: type, arguments: list[Value], keywords: Names) -> Value:
        if issubclass(kind, BaseException):
            return self._exception(kind, arguments)
        if issubclass(kind, enum.Enum) and kind.__members__:
            if isinstance(arguments[0] if arguments else None, Unknown):
                return arguments[0]
            return self.native(kind, arguments[:1])
        if kind is int and len(arguments) == 1 and type(arguments[0]) is SizeText:
            return Size(arguments[0])
        if issubclass(kind, argparse.Action) or kind in (argparse.Namespace, types.SimpleNamespace):
            return self.native(kind, arguments, keywords)
        if id(kind) in CALLABLE or kind in (type(None), collections.Counter):
            return self._plain(kind, arguments, keywords)
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return self.native(kind, arguments, keywords)
        return self.gap(f"an instance of {kind.__name__}")

    def _exception(self, kind: type, arguments: list[Value]) -> Value:
        shown = [self.text(one) if isinstance(one, OPAQUE) else one for one in arguments]
        plain = ["?" if isinstance(one, Unknown) else one for one in shown]
        if not bounded(plain):
            plain = []
        try:
            return kind(*plain)
        except Exception:
            return RuntimeError(*plain)

    def opaque(self, value: Value, depth: int = 0) -> bool:
        """Whether a value has parts that Python itself cannot work with."""
        if isinstance(value, OPAQUE):
            return True
        if depth > 3:
            return False
        if isinstance(value, (list, tuple, set, frozenset)):
            return any(self.opaque(one, depth + 1) for one in value)
        return isinstance(value, dict) and any(self.opaque(one, depth + 1) for one in value.values())

    def cause_of(self, values: list[Value]) -> Unknown:
        """Why these values are unknown."""
        found: list[Unknown] = []
        for value in values:
            if isinstance(value, Unknown):
                found.append(value)
            elif isinstance(value, (list, tuple, set)):
                found.extend(one for one in value if isinstance(one, Unknown))
            elif isinstance(value, dict):
                found.extend(one for one in value.values() if isinstance(one, Unknown))
        return both(*found) if found else self.gap("a call on objects")

    def _plain(self, function: Any, arguments: list[Value], keywords: Names) -> Value:
        """Call with known values only."""
        values = [*arguments, *keywords.values()]
        blurred = next((self.blurred[id(one)][1] for one in values if id(one) in self.blurred), None)
        if blurred is not None:
            return blurred
        if function is re.sub and len(arguments) > 2 and isinstance(arguments[1], (Function, Bound)):
            arguments = [arguments[0], self.bridge(arguments[1]), *arguments[2:]]
            values = [*arguments, *keywords.values()]
        if any(self.opaque(one) for one in values):
            return self.cause_of(values)
        if not all(bounded(one) for one in values):
            return self.gap("a value that is too large")
        if function in MATCHING and not self._matches_soon(arguments):
            return self.gap("a costly pattern")
        self.steps += sum(len(one) for one in values if isinstance(one, SIZED)) // 64
        if _costly(function, arguments, keywords):
            return self.gap(f"a costly call of {getattr(function, '__name__', '')}")
        return self.native(function, arguments, keywords)

    def _matches_soon(self, arguments: list[Value]) -> bool:
        pattern = arguments[0] if arguments else None
        pattern = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
        length = max((len(one) for one in arguments[1:] if isinstance(one, str)), default=0)
        return safe_pattern(pattern, length)

    def _method(self, function: Any, receiver: Any, arguments: list[Value], keywords: Names) -> Value:
        name = function.__name__
        if isinstance(receiver, (argparse._ActionsContainer, argparse.Action)):
            return self.call_parser(function, receiver, arguments, keywords)
        for kind, names in CHANGING.items():
            if isinstance(receiver, kind) and name in names:
                return self._change(receiver, name, arguments, keywords)
        if id(receiver) in self.blurred:
            return self.blurred[id(receiver)][1]
        if numpy_functions.readable(receiver, name):
            return numpy_functions.method(self, function, arguments, keywords)
        if isinstance(receiver, dict) and name in ("get", "items", "keys", "values", "copy"):
            return self._of_dict(receiver, name, function, arguments)
        if not readable(receiver, name) and id(function) not in CALLABLE and not isinstance(receiver, type):
            return self.lost(f"{type(receiver).__name__}.{name}")
        if isinstance(receiver, str) and (unsafe := self._text_method(receiver, name, arguments, keywords)) is not None:
            return unsafe
        if isinstance(receiver, (list, tuple)) and name in ("index", "count", "copy"):
            if name == "copy" or (len(arguments) == 1 and not keywords):
                return self._of_row(receiver, name, arguments)
            if self.opaque(receiver):
                return self.cause_of(list(receiver))
        if isinstance(receiver, inspect.Signature):
            keywords = {key: one for key, one in keywords.items() if not isinstance(one, Perhaps)}
            # the assignment of arguments to parameters: no value is examined
            return self.native(function, arguments, keywords)
        matching = isinstance(receiver, re.Pattern) and name in ON_PATTERN
        if matching and not self._matches_soon([receiver.pattern, *arguments]):
            return self.gap("a costly pattern")
        if isinstance(receiver, type) and isinstance(receiver, enum.EnumMeta):
            return self.gap(f"{receiver.__name__}.{name}")
        if any(self.opaque(one) for one in [*arguments, *keywords.values()]):
            return self.cause_of([*arguments, *keywords.values()])
        found = self.native(function, arguments, keywords)
        return found if bounded(found) else self.gap("a value that is too large")

    def _of_row(self, receiver: Any, name: str, arguments: list[Value]) -> Value:
        """index, count and copy of a list with possibly unknown values."""
        if name == "copy":
            return list(receiver)
        count = 0
        for at, one in enumerate(receiver):
            found = self.truth(self.compare("Eq", one, arguments[0]))
            if isinstance(found, Unknown):
                return found
            if found and name == "index":
                return at
            count += found
        if name == "index":
            raise self.failure(ValueError("not in list"))
        return count

    def _of_dict(self, receiver: Any, name: str, function: Any, arguments: list[Value]) -> Value:
        if name == "get":
            key = arguments[0] if arguments else None
            if isinstance(key, Unknown):
                return key
            if not self._hashable(key):
                return self.gap("an unhashable key")
            self.recall(receiver, key)
            return receiver.get(key, arguments[1] if len(arguments) > 1 else None)
        if name == "copy":
            return dict(receiver)
        unsure = self.unsure(receiver)
        return list(function()) if unsure is None else unsure

    def _text_method(self, receiver: str, name: str, arguments: list[Value], keywords: Names) -> Value:
        """An answer for cases in which Python's own method must not be called; otherwise None."""
        values = [*arguments, *keywords.values()]
        if name == "join" and arguments:
            items = self.items(arguments[0])
            if isinstance(items, Unknown):
                return items
            if any(isinstance(one, OPAQUE) for one in items):
                return self.cause_of(items)
            return self.native(receiver.join, [items]) if bounded(items) else self.gap("a string that is too long")
        if any(isinstance(one, Unknown) for one in values) and not (name == "format" and self.rendering):
            return both(*values)
        if name == "format":
            return self._format(receiver, arguments, keywords)
        numbers = [one for one in values if isinstance(one, int)]
        if name in WIDE and any(one > 10_000 for one in numbers):
            return self.gap("a string that is too long")
        replaces = name == "replace" and all(isinstance(one, str) for one in arguments) and len(arguments) > 1
        if replaces and (len(receiver) + 1) * max(len(arguments[1]), 1) > LENGTH:
            return self.gap("a string that is too long")
        return None

    def _format(self, template: str, arguments: list[Value], keywords: Names) -> Value:
        if not safe_template(template):
            return self.gap("a format that reads attributes")
        shown = [self._shown(one) for one in arguments]
        named = {key: self._shown(one) for key, one in keywords.items()}
        return self.native(template.format, shown, named)

    def _shown(self, value: Value) -> Value:
        if not isinstance(value, OPAQUE):
            return value if bounded(value) else "..."
        found = self.text(value)
        return "?" if isinstance(found, Unknown) else found

    def _change(self, receiver: Any, name: str, arguments: list[Value], keywords: Names) -> Value:
        """A method that changes a container."""
        if isinstance(receiver, dict):
            return self._change_dict(receiver, name, arguments, keywords)
        self.touch(receiver)
        if name in ("extend", "update", "difference_update", "intersection_update") and arguments:
            items = self.items(arguments[0])
            if isinstance(items, Unknown):
                self.blur(receiver, items)
                return None
            arguments = [items, *arguments[1:]]
            if len(items) + len(receiver) > LENGTH:
                raise Exhausted("a container that is too large")
        if name == "sort":
            ordered = self.sort(list(receiver), keywords)
            if isinstance(ordered, Unknown):
                self.blur(receiver, ordered)
            else:
                receiver[:] = ordered
            return None
        unknown = [one for one in arguments if isinstance(one, Unknown)]
        if unknown and (isinstance(receiver, set) or name in ("remove", "insert", "pop")):
            self.blur(receiver, both(*unknown))
            return both(*unknown) if name == "pop" else None
        if id(receiver) in self.blurred and name == "pop":
            return self.blurred[id(receiver)][1]
        return self.native(getattr(receiver, name), arguments, {})

    def sort(self, values: list[Value], keywords: Names) -> list[Value] | Unknown:
        """Values in order; a key function of the program is called for each."""
        key = keywords.get("key")
        keys = [self.call(key, [one], {}) for one in values] if key is not None else list(values)
        if any(self.opaque(one) for one in keys):
            return self.cause_of(keys)
        reverse = self.truth(keywords.get("reverse", False))
        if isinstance(reverse, Unknown):
            return reverse
        order = self.native(sorted, [range(len(values))], {"key": keys.__getitem__, "reverse": reverse})
        return [values[at] for at in order]

    def _change_dict(self, receiver: Any, name: str, arguments: list[Value], keywords: Names) -> Value:
        if name == "update":
            for given in [*arguments, keywords]:
                given = self.plain(given)
                if isinstance(given, Unknown) or not isinstance(given, dict):
                    pairs = self.items(given)
                    if isinstance(pairs, Unknown):
                        self.blur(receiver, pairs)
                        continue
                    given = self.native(dict, [pairs])
                for key, value in given.items():
                    self.put(receiver, key, value)
            return None
        if name == "clear" or name == "popitem":
            self.touch(receiver)
            return self.native(getattr(receiver, name), [])
        key = arguments[0] if arguments else None
        if isinstance(key, Unknown) or not self._hashable(key):
            self.blur(receiver, both(key, Unknown()))
            return both(key, Unknown())
        return self._take(receiver, name, key, arguments)

    def _take(self, receiver: Any, name: str, key: Value, arguments: list[Value]) -> Value:
        """pop and setdefault of a dictionary."""
        self.recall(receiver, key)
        if name == "setdefault":
            if key not in receiver:
                self.put(receiver, key, arguments[1] if len(arguments) > 1 else None)
            return receiver[key]
        if key in receiver:
            value = receiver[key]
            self.drop(receiver, key)
            return value
        if len(arguments) > 1:
            return arguments[1]
        if id(receiver) in self.blurred:
            return self.blurred[id(receiver)][1]
        raise self.failure(KeyError(key))

    def bridge(self, function: Value) -> Any:
        """A function of the program in a form that Python itself can call."""
        raise NotImplementedError

    def call_parser(self, function: Any, receiver: Any, arguments: list[Value], keywords: Names) -> Value:
        """A method of a command line parser."""
        raise NotImplementedError


def _holds_opaque(value: Value) -> bool:
    """Whether Python itself cannot use a value, or a key contains such a value."""
    return isinstance(value, OPAQUE) or (isinstance(value, tuple) and any(isinstance(one, OPAQUE) for one in value))


def _costly(function: Any, arguments: list[Value], keywords: Names) -> bool:
    """Whether a call with small arguments may take much time or memory."""
    name = getattr(function, "__name__", "")
    numbers = [one for one in arguments if isinstance(one, int)]
    if name in ("range", "repeat") or name in ("bytes", "list"):
        return any(abs(one) > LENGTH for one in numbers) if name != "list" else False
    if name == "pow":
        return any(one.bit_length() > 64 for one in numbers) or any(abs(one) > 512 for one in numbers[1:2])
    if name in ("product", "combinations", "permutations"):
        size = 1
        for one in arguments:
            size *= max(len(one) if isinstance(one, SIZED) else 2 ** min(one, 20) if isinstance(one, int) else 1, 1)
        return size > 10_000 or bool(keywords)
    if name == "format":
        return len(arguments) > 1 and not safe_format(str(arguments[1]))
    if name == "int" or name == "float":
        return any(isinstance(one, str) and len(one) > 1000 for one in arguments)
    return name == "round" and any(abs(one) > 1000 for one in numbers[1:])
