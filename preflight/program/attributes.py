"""Attributes of the program's objects, classes and modules, and of Python values that it may read."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import types
from collections.abc import Callable

from preflight.program import numpy_functions
from preflight.program.annotation_stand_ins import stood_for
from preflight.program.cached_executions import COMMAND
from preflight.program.imports import Imports
from preflight.program.stdlib_allowlist import BUILTINS, MODULES, readable
from preflight.program.values import (
    MISSING,
    Bound,
    Builtin,
    Class,
    ClassMethod,
    Function,
    LoadedModules,
    Module,
    Names,
    Object,
    Partial,
    Property,
    Static,
    Super,
    Symbol,
    Unknown,
    Value,
)
from preflight.source.typing_without_import import Any

NAMESPACES = (argparse.Namespace, types.SimpleNamespace)
NOTHING = Builtin("nothing", lambda *given, **named: None)
HOOKS = frozenset(("__init__", "__post_init__", "__init_subclass__", "__setattr__", "__set_name__"))

ENDING = ("nn.Cell", "nn.Module", "nn.cell.Cell")
"""Classes outside the program with an __init__ that calls no other class."""


class Attributes(Imports):
    """Finds and sets attributes."""

    enum_members: dict[type, Names]

    def attribute(self, owner: Value, name: str) -> Value:
        """An attribute of anything."""
        if type(owner) is dataclasses.Field:
            return self._of_native(owner, name)
        if isinstance(owner, Unknown):
            return self._of_loaded(owner, name) if isinstance(owner, LoadedModules) else owner
        if isinstance(owner, NAMESPACES):
            return self._of_namespace(owner, name)
        if isinstance(owner, Object):
            return self._of_object(owner, name)
        if isinstance(owner, Symbol):
            return self._of_symbol(owner, name)
        if isinstance(owner, Module):
            return self._of_module(owner, name)
        if isinstance(owner, Class):
            return self._of_class(owner, name)
        if isinstance(owner, Super):
            return self._of_super(owner, name)
        if isinstance(owner, Function):
            return self._of_function(owner, name)
        if isinstance(owner, Bound):
            return owner.receiver if name == "__self__" else self.attribute(owner.function, name)
        if isinstance(owner, Property):
            if name == "setter":
                return Builtin("setter", lambda function: Property(owner.getter, function))
            return self.gap(f"attribute {name} of a property")
        if isinstance(owner, Partial):
            found = {"func": owner.function, "args": owner.arguments, "keywords": dict(owner.keywords)}
            return found.get(name, self.gap(f"attribute {name}"))
        return self._of_native(owner, name)

    def _of_namespace(self, owner: Any, name: str) -> Value:
        names = owner.__dict__
        if name in names:
            if names is self.arguments:
                self.reads.append(name)
                self.recall(names, name)
            return names[name]
        if name == "__dict__":
            return names
        if name == "__class__":
            return type(owner)
        error = AttributeError(f"'{type(owner).__name__}' object has no attribute '{name}'")
        raise self.failure(error, sure=not self.unread_options)

    def _of_object(self, owner: Object, name: str) -> Value:
        looked_up = owner.cls.find("__getattribute__")
        if isinstance(looked_up, Function):
            return self.call(looked_up, [owner, name], {})
        return self._plain_attribute(owner, name)

    def _plain_attribute(self, owner: Object, name: str) -> Value:
        """An attribute of an object, found by Python's default lookup."""
        if name in self.known_arguments:
            self.reads.append(name)
        found = owner.cls.find(name)
        if isinstance(found, Property):
            return self.call(found.getter, [owner], {})
        if name in owner.names:
            self.recall(owner.names, name)
            return owner.names[name]
        if found is not MISSING:
            return self.bind(found, owner, owner.cls)
        if name in ("__dict__", "__class__"):
            return owner.names if name == "__dict__" else owner.cls
        if (found := self._of_content(owner, name)) is not MISSING:
            return found
        getter = owner.cls.find("__getattr__")
        if getter is not MISSING and not name.startswith("__"):
            return self.call(getter, [owner, name], {})
        if name == "__setattr__":
            return self._setter(owner)
        if name in HOOKS:
            return NOTHING
        if owner.cls.opaque:
            known = self.inherited_values.get(name)
            return known(owner) if known is not None else self._inherited(owner.cls, name)
        raise self.failure(AttributeError(f"'{owner.cls.name}' object has no attribute '{name}'"), sure=False)

    def _of_content(self, owner: Object, name: str) -> Value:
        """A method of an object that is a dict or list; MISSING if it is neither or has no such method."""
        if owner.data is None:
            return MISSING
        if readable(owner.data, name):
            return getattr(owner.data, name)
        return self.content_methods(owner.data).get(name, MISSING)

    never_inherited: frozenset[str] = frozenset()
    """Attributes that no class outside the program has."""

    inherited_values: dict[str, Callable[[Object], Value]]
    """Attributes that classes outside the program set on their objects, and their values."""

    def content_methods(self, data: Value) -> dict[str, Builtin]:
        """The methods behind the operations of a dict or list."""
        raise NotImplementedError

    def _inherited(self, cls: Class, name: str) -> Unknown:
        """An attribute of a base outside the program: calling it runs no readable code of the program."""
        if name in self.never_inherited:
            raise self.failure(AttributeError(f"'{cls.name}' object has no attribute '{name}'"), sure=False)
        known = all(isinstance(base, (Symbol, Class, type)) for one in cls.lineage for base in one.bases)
        return Unknown(gaps=(f"{cls.name}.{name}()",)) if known else self.gap(f"attribute {name} of unknown bases")

    def _of_symbol(self, owner: Symbol, name: str) -> Value:
        if owner.name in MODULES and name in MODULES[owner.name]:
            return MODULES[owner.name][name]
        if name in ("__name__", "__qualname__"):
            return owner.name.rpartition(".")[2]
        if owner.name == "builtins" and name in BUILTINS:
            return BUILTINS[name]
        if owner.name == "builtins" and name == "__dict__":
            return BUILTINS
        if owner.name == "os" and name == "environ":
            return self.environ
        if owner.name == "sys" and name in ("argv", "modules"):
            self.ask(COMMAND)
            return self.argv if name == "argv" else LoadedModules(gaps=self.gap("sys.modules").gaps)
        return self.symbol(f"{owner.name}.{name}")

    def _of_loaded(self, owner: LoadedModules, name: str) -> Value:
        """A method of the mapping, which runs no code of the program."""
        asked = name == "get"
        return Builtin(name, lambda *given: owner if name == "copy" else self.loaded_module(owner, *given[:asked]))

    def loaded_module(self, owner: LoadedModules, name: Value = None) -> Value:
        """The module of a name, if it belongs to the program and is loaded."""
        known = isinstance(name, str) and isinstance(self.modules.get(name), Module)
        return self.load(name) if known else Unknown(gaps=owner.gaps)

    def _of_module(self, owner: Module, name: str) -> Value:
        if name == "__dict__":
            return owner.names
        known = name in owner.names or self.sources.find(f"{owner.name}.{name}") is not None
        if known or "__getattr__" in owner.names:
            return self.member(owner, name)
        raise self.failure(AttributeError(f"module '{owner.name}' has no attribute '{name}'"), sure=False)

    def _of_class(self, owner: Class, name: str) -> Value:
        found = owner.find(name)
        if found is not MISSING:
            return self.bind(found, None, owner)
        special: dict[str, Any] = {
            "__name__": lambda: owner.name,
            "__qualname__": lambda: owner.name,
            "__mro__": lambda: (*owner.lineage, object),
            "__module__": lambda: owner.module.name,
            "__bases__": lambda: tuple(owner.bases) or (object,),
            "__dict__": lambda: owner.names,
            "__doc__": lambda: None,
            "__annotations__": lambda: {key: self.annotation(owner, key) for key in owner.annotations},
        }
        if name in special:
            return special[name]()
        if name == "__dataclass_fields__" and owner.all_fields is not None:
            return dict(owner.all_fields)
        if name in HOOKS:
            return NOTHING
        if owner.opaque:
            return self._inherited(owner, name)
        raise self.failure(AttributeError(f"type object '{owner.name}' has no attribute '{name}'"), sure=False)

    def annotation(self, owner: Class, name: str) -> Value:
        """The annotation of a name in a class."""
        raise NotImplementedError

    def _of_super(self, owner: Super, name: str) -> Value:
        receiver = owner.receiver
        cls = receiver.cls if isinstance(receiver, Object) else receiver
        rows = cls.order() if isinstance(cls, Class) and cls.opaque else cls.lineage if isinstance(cls, Class) else []
        start = next((at + 1 for at, one in enumerate(rows) if one is owner.cls), 1)
        for one in rows[start:]:
            if isinstance(one, Symbol):
                if name == "__init__" and one.name.endswith(ENDING):
                    return NOTHING
                continue
            if name == "__new__" and name in one.names:
                found = one.names[name]
                return found.function if isinstance(found, Static) else found
            if name in one.names:
                return self.bind(one.names[name], receiver if isinstance(receiver, Object) else None, cls)
            if name == "__init__" and one.fields is not None:
                return self._filler(receiver, one)
        if isinstance(receiver, Object) and (found := self._of_content(receiver, name)) is not MISSING:
            return found
        if name == "__setattr__" and isinstance(receiver, Object):
            return self._setter(receiver)
        if name == "__getattribute__" and isinstance(receiver, Object):
            return Builtin(name, lambda key: self._plain_attribute(receiver, key))
        if name == "__new__":
            return Builtin("__new__", lambda *given, **named: self.blank(given))
        return NOTHING if name in HOOKS else self.gap(f"super().{name}")

    def _setter(self, owner: Object) -> Builtin:
        """A function that sets an attribute directly, without the class's own method."""

        def put(key: Value, value: Value) -> None:
            if isinstance(key, str):
                self.put(owner.names, key, value)
            else:
                self.lost("an attribute with an unknown name")

        return Builtin("__setattr__", put)

    def _filler(self, receiver: Object, cls: Class) -> Builtin:
        return Builtin("__init__", lambda *given, **named: self.fill_fields(receiver, cls, list(given), named))

    def blank(self, given: tuple[Value, ...]) -> Value:
        """A new, uninitialized object."""
        return Object(given[0]) if given and isinstance(given[0], Class) else self.gap("__new__")

    def fill_fields(self, target: Object, cls: Class, arguments: list[Value], keywords: Names) -> None:
        """Set the fields of a dataclass, like its __init__."""
        raise NotImplementedError

    def _of_function(self, owner: Function, name: str) -> Value:
        if name in owner.names:
            return owner.names[name]
        if name in ("__name__", "__qualname__"):
            return owner.name if name == "__name__" else owner.qualified
        if name == "__module__":
            return owner.scope.module.name
        if name == "__doc__":
            return None
        if name == "__dict__":
            return owner.names
        raise self.failure(AttributeError(f"'function' object has no attribute '{name}'"), sure=False)

    def bind(self, value: Value, owner: Object | None, cls: Class) -> Value:
        """Bind a value of a class, as an attribute of an object or of the class itself."""
        if isinstance(value, Function):
            return Bound(value, owner) if owner is not None else value
        if isinstance(value, Static):
            return value.function
        if isinstance(value, ClassMethod):
            return Bound(value.function, cls)
        if isinstance(value, Property) and owner is not None:
            return self.call(value.getter, [owner], {})
        return value

    def _of_native(self, owner: Any, name: str) -> Value:
        if isinstance(owner, enum.Enum) and (found := self._of_enum(type(owner), name)) is not MISSING:
            return self.call(found.getter, [owner], {}) if isinstance(found, Property) else self._bound(found, owner)
        if isinstance(owner, type):
            return self._of_type(owner, name)
        if name == "__class__":
            return type(owner)
        if isinstance(owner, dataclasses.Field) and name == "type":
            return self.field_type(owner)
        if isinstance(owner, argparse.Action) and name in owner.__dict__:
            return owner.__dict__[name]
        if readable(owner, name) or numpy_functions.readable(owner, name):
            return self.native(getattr, [owner, name])
        if callable(owner) and name in ("__name__", "__qualname__"):
            return getattr(owner, "__name__", "")
        if isinstance(owner, BaseException) and name in ("__cause__", "__context__", "__traceback__"):
            return None
        if hasattr(owner, name):
            return Unknown(gaps=(f"{type(owner).__name__}.{name}()",))
        kind = type(owner).__name__
        raise self.failure(AttributeError(f"'{kind}' object has no attribute '{name}'"), sure=False)

    def _of_enum(self, kind: type, name: str) -> Value:
        for one in kind.__mro__:
            if one in self.enum_members and name in self.enum_members[one]:
                return self.enum_members[one][name]
        return MISSING

    def _bound(self, found: Value, owner: Value) -> Value:
        if isinstance(found, Static):
            return found.function
        return Bound(found.function, type(owner)) if isinstance(found, ClassMethod) else Bound(found, owner)

    def _of_type(self, owner: type, name: str) -> Value:
        if (stood := stood_for(owner)) is not owner and not name.startswith("__"):
            return self.attribute(stood, name)
        if issubclass(owner, enum.Enum):
            if name in owner.__members__:
                return owner.__members__[name]
            if name == "__members__":
                return dict(owner.__members__)
            found = self._of_enum(owner, name)
            if found is not MISSING:
                return Bound(found.function, owner) if isinstance(found, ClassMethod) else found
        if name in ("__name__", "__qualname__", "__module__"):
            return getattr(owner, name)
        if name == "__bases__":
            return owner.__bases__
        if owner in (dict, list) and (method := self._unbound(name)) is not None:
            return method
        if owner is object and name == "__new__":
            return Builtin("__new__", lambda *given, **named: self.blank(given))
        if name in ("__init__", "__new__", "__call__"):
            return self.gap(f"{owner.__name__}.{name}")
        if readable(owner, name):
            return getattr(owner, name)
        if not hasattr(owner, name):
            raise self.failure(AttributeError(f"type object '{owner.__name__}' has no attribute '{name}'"), sure=False)
        return self.gap(f"{owner.__name__}.{name}")

    def _unbound(self, name: str) -> Builtin | None:
        """A method of dict or list called on the class, as dict.__setitem__(config, key, value)."""
        if name not in self.content_methods({}):
            return None

        def run(owner: Value, *given: Value) -> Value:
            data = owner.data if isinstance(owner, Object) and owner.data is not None else owner
            if not isinstance(data, (dict, list)):
                return self.lost(f"{name} of something unknown")
            return self.content_methods(data)[name].run(*given)

        return Builtin(name, run)

    def field_type(self, field: Any) -> Value:
        """The type of a field of a dataclass."""
        raise NotImplementedError

    def native(self, function: Any, arguments: list[Value], keywords: Names | None = None) -> Value:
        """Run a Python function on known values."""
        raise NotImplementedError

    def names_of(self, owner: Value) -> Names | None:
        """The __dict__ of an object, if it has one."""
        if isinstance(owner, (Object, Module, Class, Function)):
            return owner.names
        if isinstance(owner, NAMESPACES):
            names: Names = owner.__dict__
            return names
        return None

    def assign_attribute(self, owner: Value, name: str, value: Value) -> None:
        """Set an attribute."""
        if isinstance(owner, Object):
            found = owner.cls.find(name)
            if isinstance(found, Property):
                if found.setter is not None:
                    self.call(found.setter, [owner, value], {})
                return
            setter = owner.cls.find("__setattr__")
            if isinstance(setter, Function):
                self.call(setter, [owner, name, value], {})
                return
            if name == "__class__" and isinstance(value, Class):
                owner.cls = value
                return
        names = self.names_of(owner)
        if names is not None:
            self.put(names, name, value)
        elif isinstance(owner, argparse.Action) and not name.startswith("__"):
            self.put(owner.__dict__, name, value)
        elif isinstance(owner, argparse.ArgumentParser) and name == "conflict_handler" and value == "resolve":
            owner.conflict_handler = value
            for group in owner._action_groups:
                group.conflict_handler = value
        elif not isinstance(owner, (Unknown, Symbol)):
            self.lost(f"attribute {name} set on {type(owner).__name__}")
