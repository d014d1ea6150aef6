"""Python functions that inspect objects of the program: isinstance, getattr, print and similar ones."""

from __future__ import annotations

import argparse
import ast
import builtins
import copy
import functools
import inspect
import itertools
import operator
import types
import typing
from collections.abc import Callable
from typing import Any

from preflight.program import numpy_functions
from preflight.program.annotation_stand_ins import stood_for
from preflight.program.attributes import NAMESPACES
from preflight.program.inspect_signature import Signatures
from preflight.program.ir import Unreadable, compile_expression
from preflight.program.iterable_functions import SPREAD
from preflight.program.machine_facts import FILES
from preflight.program.stdlib_functions import OPAQUE, Special
from preflight.program.values import (
    MISSING,
    Bound,
    Class,
    ClassMethod,
    Decorator,
    Function,
    Lazy,
    Module,
    Names,
    Object,
    Partial,
    Property,
    Scope,
    Static,
    Super,
    Symbol,
    Unknown,
    Value,
    both,
)

ABSENT = (AttributeError, ImportError)


class Specials(Signatures):
    """One method per function, selected by the function's identity."""

    def special_table(self) -> dict[int, Special]:
        """The functions that are answered here."""
        named = {**self._of_builtins(), **self._of_modules()}
        table = {id(function): special for function, special in named.items()}
        table.update((id(kind), self._spread_first(kind)) for kind in (*SPREAD, itertools.pairwise))
        return table

    def _of_builtins(self) -> dict[Any, Special]:
        return {
            isinstance: self._isinstance,
            issubclass: self._issubclass,
            hasattr: self._hasattr,
            getattr: self._getattr,
            setattr: self._setattr,
            delattr: self._delattr,
            vars: self._vars,
            callable: self._callable,
            print: self._print,
            type: self._type,
            str: self._str,
            repr: self._str,
            len: self._len,
            dict: self._dict,
            map: self._map,
            filter: self._filter,
            sorted: self._sorted,
            min: lambda given, named: self._extreme(min, given, named),
            max: lambda given, named: self._extreme(max, given, named),
            all: lambda given, named: self._every(given, True),
            any: lambda given, named: self._every(given, False),
            iter: self._iter,
            next: self._next,
            id: lambda given, named: id(given[0]),
            hash: lambda given, named: self.gap("a hash"),
            bool: lambda given, named: self.truth(given[0]) if given else False,
            super: self._super,
            property: lambda given, named: Property(given[0], given[1] if len(given) > 1 else None),
            staticmethod: lambda given, named: Static(given[0]),
            classmethod: lambda given, named: ClassMethod(given[0]),
        }

    def _of_modules(self) -> dict[Any, Special]:
        return {
            builtins.eval: self._eval,
            builtins.open: self._open,
            builtins.globals: lambda given, named: self.scope.module.names if self.scope else {},
            builtins.locals: lambda given, named: dict(self.scope.names) if self.scope else {},
            builtins.__import__: self._import,
            copy.deepcopy: self._copy,
            copy.copy: self._copy,
            functools.partial: lambda given, named: Partial(given[0], tuple(given[1:]), named),
            functools.wraps: lambda given, named: Decorator("wraps", tuple(given[:1])),
            functools.lru_cache: lambda given, named: given[0] if given and _own(given[0]) else Decorator("cache"),
            functools.cache: lambda given, named: given[0],
            functools.cached_property: lambda given, named: Property(given[0]),
            functools.total_ordering: lambda given, named: given[0],
            functools.reduce: self._reduce,
            itertools.cycle: self._cycle,
            operator.attrgetter: lambda given, named: self.gap("attrgetter"),
            builtins.dir: self._dir,
            inspect.getsource: self._source,
            inspect.isclass: lambda given, named: isinstance(given[0], (Class, type)),
            inspect.isfunction: lambda given, named: isinstance(given[0], Function),
            inspect.getdoc: lambda given, named: None,
            inspect.currentframe: lambda given, named: self.scope.module if self.scope else None,
            inspect.getmodule: self._module_of,
            inspect.getmembers: self._members,
            inspect.signature: self.signature,
            ast.parse: self._parse,
            typing.get_type_hints: lambda given, named: self.gap("type hints"),
            typing.cast: lambda given, named: given[1],
            typing.TypeVar: lambda given, named: self.symbol("typing.TypeVar"),
        }

    def _import(self, given: list[Value], named: Names) -> Value:
        """A module by its name: with names that are wanted of it itself, without these the topmost package."""
        wanted = given[3] if len(given) > 3 else named.get("fromlist", ())
        level = given[4] if len(given) > 4 else named.get("level", 0)
        if not isinstance(given[0], str) or not isinstance(wanted, (list, tuple)) or level != 0:
            return self.gap("__import__")
        return self.load(given[0] if wanted else given[0].partition(".")[0])

    def _isinstance(self, given: list[Value], named: Names) -> Value:
        value, kinds = given[0], given[1]
        if isinstance(value, Unknown):
            return value
        unsure: Unknown | None = None
        for kind in _flat(kinds):
            found = self._is_one(value, kind)
            if found is True:
                return True
            if isinstance(found, Unknown):
                unsure = found
        return False if unsure is None else unsure

    apart: Callable[[Value, str], bool] = staticmethod(lambda value, kind: False)
    """Whether an external object is certainly not an instance of an external class, by its name."""

    def _is_one(self, value: Value, kind: Value) -> Value:
        kind = stood_for(kind)
        if isinstance(kind, Unknown):
            return kind
        if isinstance(kind, Symbol):
            if kind.name == numpy_functions.KIND and numpy_functions.is_array(value):
                return type(value).__name__ == "ndarray"
            opaque = isinstance(value, Symbol) or (isinstance(value, Object) and value.cls.opaque)
            if isinstance(value, Object) and value.cls.derives_from(kind.name):
                return True
            unsure = opaque and not self.apart(value, kind.name)
            return self.gap(f"an instance of {kind.name}") if unsure else False
        if isinstance(kind, Class):
            if isinstance(value, Symbol):
                return False
            return isinstance(value, Object) and value.cls.inherits(kind)
        if isinstance(value, Object):
            if not isinstance(kind, type):
                return self.gap("an instance of something that is not a class")
            return kind is object or (value.cls.payload is not None and issubclass(value.cls.payload, kind))
        if isinstance(value, Class):
            return kind is type
        if isinstance(value, (Function, Bound)):
            return kind in (types.FunctionType, types.MethodType) or kind is object
        if isinstance(value, Symbol):
            return self.gap(f"whether {value.name} is a class") if kind is type else kind is object
        return self.native(isinstance, [value, kind])

    def _issubclass(self, given: list[Value], named: Names) -> Value:
        value, kinds = given[0], given[1]
        if isinstance(value, Class):
            if any(isinstance(kind, Class) and value.inherits(kind) for kind in _flat(kinds)):
                return True
            if any(isinstance(kind, Symbol) and value.derives_from(kind.name) for kind in _flat(kinds)):
                return True
            outside = any(isinstance(kind, (Symbol, Unknown)) for kind in _flat(kinds))
            return self.gap("a base outside the program") if outside and value.opaque else False
        if isinstance(value, (Unknown, Symbol)):
            return both(value, Unknown()) if isinstance(value, Unknown) else self.gap(f"the bases of {value.name}")
        kinds = tuple(kind for kind in _flat(kinds) if isinstance(kind, type))
        return self.native(issubclass, [value, kinds]) if isinstance(value, type) else False

    def _hasattr(self, given: list[Value], named: Names) -> Value:
        owner, name = given[0], given[1]
        if isinstance(owner, Unknown) or not isinstance(name, str):
            return both(owner, name)
        found = self._find(owner, name)
        if isinstance(owner, Symbol):
            return self._doubted(owner, name, found)
        if isinstance(found, Unknown) and isinstance(owner, (Object, Class)) and found.gaps:
            cls = owner.cls if isinstance(owner, Object) else owner
            return found if cls.opaque and cls.find(name) is MISSING and name not in _names(owner) else True
        return found is not MISSING

    def _doubted(self, owner: Symbol, name: str, found: Value) -> Value:
        """Whether an external object has an attribute: known only if its version is."""
        if "(" in owner.name or not self.facts.described(owner.name):
            top = owner.name.partition(".")[0]
            return Unknown((top.replace("_", "-"),)) if "(" not in owner.name else self.gap(f"{owner.name}.{name}")
        return True

    def _find(self, owner: Value, name: str) -> Value:
        """An attribute, MISSING if there is none."""
        from preflight.program.values import Raised

        try:
            return self.attribute(owner, name)
        except Raised as raised:
            if isinstance(raised.error, ABSENT):
                return MISSING
            raise

    def _getattr(self, given: list[Value], named: Names) -> Value:
        owner, name = given[0], given[1]
        if not isinstance(name, str):
            return both(name, owner)
        if len(given) < 3:
            return self.attribute(owner, name)
        found = self._find(owner, name)
        if isinstance(owner, Symbol) and isinstance(found, Symbol):
            doubt = self._doubted(owner, name, found)
            if isinstance(doubt, Unknown):
                return doubt
        if isinstance(found, Unknown) and isinstance(owner, Object) and owner.cls.opaque:
            return found
        return given[2] if found is MISSING else found

    def _setattr(self, given: list[Value], named: Names) -> Value:
        owner, name, value = given
        if isinstance(name, str):
            self.assign_attribute(owner, name, value)
        elif self.names_of(owner) is not None:
            self.blur(self.names_of(owner), both(name, Unknown()))
        return None

    def _delattr(self, given: list[Value], named: Names) -> Value:
        names = self.names_of(given[0])
        if names is not None and isinstance(given[1], str):
            if given[1] not in names:
                raise self.failure(AttributeError(given[1]), sure=isinstance(given[0], NAMESPACES))
            self.drop(names, given[1])
        return None

    def _vars(self, given: list[Value], named: Names) -> Value:
        names = self.names_of(given[0]) if given else None
        return names if names is not None else self.gap("vars()")

    def _dir(self, given: list[Value], named: Names) -> Value:
        """The attributes that the program gives an object; those of external classes are omitted."""
        owner = given[0] if given else None
        if isinstance(owner, Object):
            return sorted({*owner.names, *(name for one in owner.cls.lineage for name in one.names)})
        names = self.names_of(owner) if owner is not None else None
        return sorted(names) if names is not None else Unknown(gaps=("dir()",))

    def _callable(self, given: list[Value], named: Names) -> Value:
        value = given[0]
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Object):
            return value.cls.find("__call__") is not MISSING
        return isinstance(value, (Function, Bound, Class, Partial, Symbol)) or callable(value)

    def _print(self, given: list[Value], named: Names) -> Value:
        texts = [self.text(one) for one in given]
        self.remark(" ".join(one if isinstance(one, str) else "?" for one in texts))
        return None

    def remark(self, text: str) -> None:
        """Keep a printed text if it is a warning on every path."""
        if not self.journals_of_doubt() and "warning" in text.lower()[:200]:
            self.remarks.append((text.strip()[:1000], self.place()))

    def journals_of_doubt(self) -> bool:
        """Whether this path may not be taken."""
        return bool(self.causes)

    def _type(self, given: list[Value], named: Names) -> Value:
        if len(given) > 1:
            return self.gap("type() with three arguments")
        value = given[0]
        if isinstance(value, Object):
            return value.cls
        if isinstance(value, OPAQUE):
            return both(value) if isinstance(value, Unknown) else self.gap("a type")
        return type(value)

    def _str(self, given: list[Value], named: Names) -> Value:
        return self.text(given[0]) if given else ""

    def _len(self, given: list[Value], named: Names) -> Value:
        value = given[0]
        if isinstance(value, Object):
            method = value.cls.find("__len__")
            if method is not MISSING:
                return self.call(method, [value], {})
        value = self.plain(value)
        if isinstance(value, OPAQUE):
            return both(value) if isinstance(value, Unknown) else self.gap("a length")
        unsure = self.unsure(value)
        return self.native(len, [value]) if unsure is None else unsure

    def _dict(self, given: list[Value], named: Names) -> Value:
        found: Names = {}
        for one in given[:1]:
            plain = self.plain(one)
            if isinstance(plain, types.MappingProxyType):
                plain = dict(plain)
            if not isinstance(plain, dict):
                rows = self.items(plain)
                if isinstance(rows, Unknown):
                    return rows
                plain = self.native(dict, [rows])
            found.update(plain)
        found.update(named)
        return found

    def _super(self, given: list[Value], named: Names) -> Value:
        if len(given) == 2 and isinstance(given[0], Class):
            return Super(given[0], given[1])
        scope = self.scope
        while scope is not None and (scope.owner is None or scope.receiver is None):
            scope = scope.outer
        if scope is None or scope.owner is None:
            return self.gap("super()")
        return Super(scope.owner, scope.receiver)

    def _eval(self, given: list[Value], named: Names) -> Value:
        text = given[0]
        if not isinstance(text, str) or len(text) > 10_000 or self.scope is None:
            return both(text, Unknown()) if isinstance(text, Unknown) else self.gap("eval")
        try:
            node = compile_expression(text)
        except Unreadable as error:
            raise self.failure(SyntaxError(str(error))) from None
        names = given[1] if len(given) > 1 and isinstance(given[1], dict) else {}
        outer = self.scope if len(given) == 1 else None
        return self.evaluate(node, Scope(dict(names), outer, self.scope.module, "function", self.scope.qualified))

    def _open(self, given: list[Value], named: Names) -> Value:
        error = self.failure(FileNotFoundError(f"No such file: {self.text(given[0]) if given else ''}"), sure=False)
        self.note(error, Unknown((FILES,)))
        return Unknown((FILES,))

    def _copy(self, given: list[Value], named: Names) -> Value:
        value = given[0]
        if isinstance(value, Object):
            made = Object(value.cls)
            made.names = {key: self._copy_inner(one) for key, one in value.names.items()}
            made.data = self._copy_inner(value.data)
            return made
        if isinstance(value, (dict, list, set)):
            return self._copy_inner(value)
        if numpy_functions.is_array(value):
            return value.copy()
        return argparse.Namespace(**vars(value)) if isinstance(value, argparse.Namespace) else value

    def _copy_inner(self, value: Value, depth: int = 0) -> Value:
        """Nested containers are copied, to a depth that programs use."""
        if id(value) in self.blurred:
            return self.blurred[id(value)][1]
        if numpy_functions.is_array(value):
            return value.copy()
        if depth > 6 or not isinstance(value, (dict, list, set)):
            return value
        self.steps += len(value)
        if isinstance(value, dict):
            return {key: self._copy_inner(one, depth + 1) for key, one in value.items()}
        return [self._copy_inner(one, depth + 1) for one in value] if isinstance(value, list) else set(value)

    def _source(self, given: list[Value], named: Names) -> Value:
        """The source of a class is only requested for its texts: a class without any answers that."""
        if isinstance(given[0], Class):
            return f"class {given[0].name}:\n    pass"
        return self.gap("the source of a function")

    def _parse(self, given: list[Value], named: Names) -> Value:
        text = given[0]
        if not isinstance(text, str) or len(text) > 1000:
            return self.gap("ast.parse")
        return self.native(ast.parse, [text, *given[1:]], named)

    def _module_of(self, given: list[Value], named: Names) -> Value:
        """The module of a function, a class or the running code."""
        value = given[0]
        if isinstance(value, (Function, Class)):
            return value.scope.module if isinstance(value, Function) else value.module
        return value if isinstance(value, Module) else self.lost("the module of an unknown object")

    def _members(self, given: list[Value], named: Names) -> Value:
        """The names of a module with their objects, in order; a predicate selects among them."""
        if not isinstance(given[0], Module):
            return self.lost("the members of an unknown object")
        chosen = given[1] if len(given) > 1 else named.get("predicate")
        found = []
        for name in sorted(given[0].names):
            lazy = given[0].names[name]
            if isinstance(lazy, Lazy) and chosen is inspect.isfunction and not self.sources.has(lazy.module):
                continue  # nothing outside the program can be run
            value = self.member(given[0], name)
            holds = self.truth(self.call(chosen, [value], {})) if chosen is not None else True
            if isinstance(holds, Unknown):
                return holds
            if holds:
                found.append((name, value))
        return found


def _flat(kinds: Value) -> list[Value]:
    if isinstance(kinds, tuple):
        return [one for kind in kinds for one in _flat(kind)]
    if isinstance(kinds, types.UnionType):
        return list(kinds.__args__)
    return [kinds]


def _own(value: Value) -> bool:
    return isinstance(value, (Function, Bound, Class, Property, Static, ClassMethod))


def _names(owner: Value) -> Names:
    return owner.names if isinstance(owner, (Object, Class, Module)) else {}
