"""The parts of `dataclasses` and `typing.NamedTuple` that preflight uses, without what makes them slow at start-up.

A record is always frozen, and no code is generated for it; `dataclasses.replace`, `fields` and `asdict` work on it too.
A named tuple is one of `collections.namedtuple`: the types of its fields, which `typing` compiles one by one, stay text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import replace as replace
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple

    class _NamedTuples(type):
        """Makes a named tuple of a class body: its annotated names become fields."""

        def __new__(meta, name, bases, body):
            if not bases:
                return super().__new__(meta, name, bases, body)
            annotations = body.pop("__annotations__", {})
            defaults = [body.pop(field) for field in annotations if field in body]
            made = namedtuple(name, annotations, defaults=defaults, module=body.pop("__module__"))
            made.__annotations__ = annotations
            for key, value in body.items():
                setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_NamedTuples):
        """A class body with annotated names becomes a named tuple."""

    class _Missing:
        """A field without default."""

    class _Factory:
        """A default that is made for each record."""

        __slots__ = ("make",)

        def __init__(self, make):
            self.make = make

    def field(*, default=None, default_factory=None):
        """A field's default, or what makes it for each record."""
        return default if default_factory is None else _Factory(default_factory)

    def dataclass(*, frozen, slots=False, kw_only=False):
        """Make a record of a class: its annotated names become fields."""

        def make(cls):
            body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
            defaults = {name: body.pop(name, _Missing) for name in cls.__annotations__}
            body = {**_METHODS, **body, "__match_args__": () if kw_only else tuple(defaults)}
            body["__slots__"] = tuple(defaults) if slots else (*defaults, "__dict__")
            body |= {"_defaults": defaults, "__dataclass_fields__": _Fields()}
            made = type(cls)(cls.__name__, cls.__bases__, body)
            made._setters = {name: made.__dict__[name].__set__ for name in defaults}
            made._getters = tuple(made.__dict__[name].__get__ for name in defaults)
            return made

        return make

    def _init(self, *values, **given):
        setters = self._setters
        if values:
            if len(values) > len(setters):
                raise TypeError(f"{type(self).__name__} takes {len(setters)} values, not {len(values)}")
            for set_it, value in zip(setters.values(), values, strict=False):
                set_it(self, value)
        taken = len(values)
        for name, default in self._defaults.items():
            if taken:
                taken -= 1
                continue
            if name in given:
                value = given.pop(name)
            elif default is _Missing:
                raise TypeError(f"{type(self).__name__} needs {name!r}")
            else:
                value = default.make() if type(default) is _Factory else default
            setters[name](self, value)
        if given:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(given)} left to set")

    def _values(self):
        return tuple(get(self) for get in self._getters)

    def _eq(self, other):
        return _values(self) == _values(other) if type(other) is type(self) else NotImplemented

    def _hash(self):
        return hash(_values(self))

    def _repr(self):
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._setters)})"

    def _refuse(self, name, value=None):
        raise AttributeError(f"{type(self).__name__} is frozen: {name!r} cannot change")

    def _reduce(self):
        return type(self), _values(self)

    _METHODS = {
        "__init__": _init,
        "__eq__": _eq,
        "__hash__": _hash,
        "__repr__": _repr,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__reduce__": _reduce,
    }

    class _Fields:
        """What `dataclasses` looks for, made when it looks."""

        def __get__(self, record, owner):
            import dataclasses

            made = dataclasses.make_dataclass(owner.__name__, list(owner._defaults)).__dataclass_fields__
            owner.__dataclass_fields__ = made
            return made

    class _Named:
        __slots__ = ("name",)

        def __init__(self, name):
            self.name = name

    def fields(record):
        """The fields of a record, each with its name."""
        return tuple(_Named(name) for name in record._defaults)

    def replace(record, **changes):
        """A copy with other values."""
        if isinstance(record, tuple):
            return record._replace(**changes)
        unknown = changes.keys() - record._setters.keys()
        if unknown:
            raise TypeError(f"{type(record).__name__} has no field {', '.join(sorted(unknown))}")
        made = object.__new__(type(record))
        for (name, set_it), get in zip(record._setters.items(), record._getters, strict=True):
            set_it(made, changes[name] if name in changes else get(record))
        return made
