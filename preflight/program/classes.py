"""Classes of the program, and those that must be real Python classes, such as enumerations and exceptions."""

from __future__ import annotations

import abc
import argparse
import dataclasses
import enum
import functools
import types
import typing
from typing import Any

from preflight.program.annotation_stand_ins import stand_in, stood_for
from preflight.program.calls import Calls
from preflight.program.ir import Node, Unreadable, compile_expression
from preflight.program.python_callbacks import Bridge
from preflight.program.values import (
    MISSING,
    Bound,
    Builtin,
    Class,
    ClassMethod,
    Decorator,
    Function,
    Names,
    Object,
    Partial,
    Property,
    Scope,
    Static,
    Symbol,
    Unknown,
    Value,
)

PLAIN_BASES = (object, abc.ABC, typing.Generic, typing.Protocol)
TUPLES = ("typing.NamedTuple",)
SIMPLE = (str, int, float, bool, type(None), tuple, enum.auto)
NATIVE = (argparse.Action, argparse.ArgumentParser, argparse.HelpFormatter)


class Classes(Calls):
    """Creates and decorates classes."""

    field_types: dict[int, tuple[Node, Scope]]

    def define_class(self, node: Node, scope: Scope) -> Value:
        """A class from its statement."""
        name, qualified = node[3], f"{scope.qualified}.{node[3]}".lstrip(".")
        bases = [self.evaluate(base, scope) for base in node[4] if base[0] != "Starred"]
        names: Names = {"__module__": scope.module.name}
        inner = Scope(names, scope, scope.module, "class", qualified)
        native = [base for base in bases if isinstance(base, type) and base not in PLAIN_BASES]
        tuples = any(base is typing.NamedTuple for base in bases)
        kept = [base for base in bases if isinstance(base, (Class, Symbol, Unknown)) or base in (dict, list)]
        cls = Class(name, kept, names, scope.module)
        inner.owner = cls
        self.block(node[6], inner)
        _own_methods(names, cls)
        if any(issubclass(base, enum.Enum) for base in native):
            return self._enumeration(name, native, names, cls)
        if any(issubclass(base, (BaseException, *NATIVE)) for base in native):
            return self._native_class(name, native, names)
        if tuples:
            self.make_fields(cls)
            names["_fields"] = tuple(cls.fields or ())
        for keyword, value in node[5]:
            if keyword != "metaclass":
                names.setdefault(f"__keyword_{keyword}__", self.evaluate(value, scope))
        self._announce(cls)
        return cls

    def _announce(self, cls: Class) -> None:
        """Run __init_subclass__ of the base classes."""
        for one in cls.lineage[1:]:
            hook = one.names.get("__init_subclass__")
            if hook is not None:
                self.call(hook.function if isinstance(hook, ClassMethod) else hook, [cls], {})
                return

    def _enumeration(self, name: str, bases: list[type], names: Names, cls: Class) -> Value:
        """A Python enumeration: its members are plain values."""
        plain = {
            key: value
            for key, value in names.items()
            if not key.startswith("_") and not isinstance(value, (Function, Property, Static, ClassMethod))
        }
        if not all(isinstance(value, SIMPLE) for value in plain.values()):
            return self.gap(f"the members of {name}")
        kind = next(base for base in reversed(bases) if issubclass(base, enum.Enum))
        mixed = [base for base in bases if not issubclass(base, enum.Enum)]
        try:
            if not plain and kind in (enum.Enum, enum.IntEnum):
                made: Any = types.new_class(name, tuple(bases))
            else:
                factory: Any = kind
                made = factory(name, list(plain.items()), **({"type": mixed[0]} if mixed else {}))
        except Exception:
            return self.gap(f"the members of {name}")
        methods = {key: value for key, value in names.items() if key not in plain and key != "__module__"}
        made.__module__ = cls.module.name
        self.enum_members[made] = methods
        return made

    def _native_class(self, name: str, bases: list[type], names: Names) -> Value:
        """A class that Python itself calls: exceptions, actions and parsers."""
        methods: dict[str, Any] = {"__module__": names["__module__"]}
        if not issubclass(bases[0], BaseException):
            for key, value in names.items():
                if isinstance(value, Function):
                    methods[key] = self.bridge(value)
        try:
            made = type(name, tuple(bases), methods)
        except TypeError:
            return self.gap(f"the class {name}")
        return made

    def bridge(self, function: Value) -> Any:
        """A function of the program, made callable by Python itself."""
        return Bridge(self, function)

    def make_fields(self, cls: Class, keyword_only: bool = False) -> None:
        """The fields of a dataclass in order."""
        fields: dict[str, Any] = {}
        for one in reversed(cls.lineage[1:]):
            fields.update(one.fields or {})
        for name, (annotation, scope) in cls.annotations.items():
            if _class_variable(annotation):
                continue
            value = cls.names.get(name, MISSING)
            field = value if isinstance(value, dataclasses.Field) else self._field(value)
            if isinstance(value, dataclasses.Field):
                if field.default is not dataclasses.MISSING:
                    cls.names[name] = field.default
                else:
                    cls.names.pop(name, None)
            field.name = name
            if not isinstance(field.kw_only, bool):
                field.kw_only = keyword_only
            self.field_types[id(field)] = (annotation, scope)
            self.kept.append(field)
            fields[name] = field
        cls.fields = fields

    kept: list[Any]
    """Keeps objects alive that are known by their identity."""

    def _field(self, default: Value) -> Any:
        made: Any = dataclasses.field()
        if default is not MISSING:
            made.default = default
        return made

    def annotation(self, owner: Class, name: str) -> Value:
        """The type that a class gives a name."""
        return self._typed(*owner.annotations[name])

    def field_type(self, field: Any) -> Value:
        """The type of a field of a dataclass."""
        held = self.field_types.get(id(field))
        return field.type if held is None else self._typed(*held)

    def _typed(self, node: Node, scope: Scope) -> Value:
        if node[0] == "Constant" and isinstance(node[3], str):
            try:
                node = compile_expression(node[3])
            except Unreadable:
                return self.gap("an annotation")
        held, self.scope = self.scope, scope
        try:
            return stand_in(self.evaluate(node, scope))
        finally:
            self.scope = held

    def decorate(self, decorator: Value, value: Value) -> Value:
        """The result of a decorator for a function or class."""
        if isinstance(decorator, Decorator):
            return self._decorated(decorator, value)
        if decorator is property or decorator is functools.cached_property:
            return Property(value)
        if decorator is staticmethod:
            return Static(value)
        if decorator is classmethod:
            return ClassMethod(value)
        if decorator is dataclasses.dataclass:
            return self._decorated(Decorator("dataclass"), value)
        if isinstance(decorator, (Function, Bound, Class, Partial, Builtin, Object)):
            found = self.call(decorator, [value], {})
            return value if isinstance(found, (Unknown, Symbol)) or found is None else found
        return value

    def _decorated(self, decorator: Decorator, value: Value) -> Value:
        if decorator.kind == "dataclass" and isinstance(value, Class):
            self.make_fields(value, "kw_only" in decorator.arguments)
        if decorator.kind == "wraps" and decorator.arguments and isinstance(value, Function):
            inner = decorator.arguments[0]
            value.names["__wrapped__"] = inner
            if isinstance(inner, Function):
                value.names.setdefault("__name__", inner.name)
                if value.owner is None:
                    value.owner = None
        return value


def dataclass_specials(classes: Classes) -> dict[int, Any]:
    """The functions of dataclasses, and decorators that change nothing."""
    table: dict[Any, Any] = {
        dataclasses.dataclass: lambda given, named: _dataclass(classes, given, named),
        dataclasses.fields: lambda given, named: _fields(classes, given[0]),
        dataclasses.field: lambda given, named: _field(classes, named),
        dataclasses.asdict: lambda given, named: _as_dict(classes, given[0]),
        dataclasses.replace: lambda given, named: _replaced(classes, given[0], named),
        dataclasses.is_dataclass: lambda given, named: _is_dataclass(stood_for(given[0])),
        dataclasses.make_dataclass: lambda given, named: _made(classes, given, named),
        abc.abstractmethod: lambda given, named: given[0],
        enum.unique: lambda given, named: given[0],
    }
    return {id(function): special for function, special in table.items()}


def _fields_of(value: Value) -> Any:
    """The fields of a dataclass, or of its nearest dataclass base."""
    value = stood_for(value)
    cls = value.cls if isinstance(value, Object) else value
    return cls.all_fields if isinstance(cls, Class) else None


def _is_dataclass(value: Value) -> Value:
    return value if isinstance(value, Unknown) else _fields_of(value) is not None


def _dataclass(classes: Classes, given: list[Value], named: Names) -> Value:
    if given:
        return classes.decorate(dataclasses.dataclass, given[0])
    return Decorator("dataclass", ("kw_only",) if named.get("kw_only") is True else ())


def _fields(classes: Classes, value: Value) -> Value:
    found = _fields_of(value)
    return tuple(found.values()) if found is not None else classes.gap("the fields of something unknown")


def _field(classes: Classes, named: Names) -> Value:
    known = {key: value for key, value in named.items() if key != "metadata" or isinstance(value, dict)}
    return classes.native(dataclasses.field, [], known)


def _as_dict(classes: Classes, value: Value) -> Value:
    found = _fields_of(value)
    if found is None or not isinstance(value, Object):
        return classes.gap("asdict")
    return {name: value.names[name] for name in found if name in value.names}


def _replaced(classes: Classes, value: Value, named: Names) -> Value:
    found = _fields_of(value)
    if found is None or not isinstance(value, Object):
        return classes.gap("replace")
    kept = {name: value.names[name] for name, one in found.items() if one.init and name in value.names}
    return classes.instance(value.cls, [], {**kept, **named})


def _made(classes: Classes, given: list[Value], named: Names) -> Value:
    """A dataclass from a list of fields."""
    title, fields = given[0], classes.items(given[1] if len(given) > 1 else named.get("fields", ()))
    bases = named.get("bases", ())
    if (
        isinstance(fields, Unknown)
        or not isinstance(title, str)
        or not isinstance(bases, tuple)
        or classes.scope is None
    ):
        return classes.lost("make_dataclass")
    names: Names = dict(named.get("namespace") or {})
    cls = Class(
        title, [base for base in bases if isinstance(base, (Class, Symbol, Unknown))], names, classes.scope.module
    )
    for field in fields:
        row = (field,) if isinstance(field, str) else field
        if not isinstance(row, tuple) or not row or not isinstance(row[0], str):
            return classes.lost("make_dataclass")
        cls.annotations[row[0]] = (("Constant", 0, 0, None), classes.scope)
        if len(row) > 2:
            names[row[0]] = row[2]
    classes.make_fields(cls)
    return cls


def _own_methods(names: Names, cls: Class) -> None:
    for value in names.values():
        inner = value
        while isinstance(inner, (Property, Static, ClassMethod, Bound)):
            inner = inner.getter if isinstance(inner, Property) else inner.function
        while isinstance(inner, Function):
            if inner.owner is None:
                inner.owner = cls
            inner = inner.names.get("__wrapped__")


def _class_variable(node: Node) -> bool:
    named = node[3] if node[0] == "Subscript" else node
    return bool("ClassVar" in named[3:])
