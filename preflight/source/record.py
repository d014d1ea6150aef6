"""The parts of `dataclasses` and `typing.NamedTuple` that preflight uses, with a faster startup.

A record is always frozen, and no code is generated for it; `dataclasses.replace`, `fields` and `asdict` work on it too.
A named tuple has no code generated either: its `__new__` is one compiled with this module, under other names.

The reason for it, measured on Python 3.11: importing the necessary modules and creating 30 records and 120 named tuples
of five fields takes 18 ms with the `eval` of `collections.namedtuple`, about half of that without; 31 ms with msgspec
(20 of them its import), 49 ms with the standard library, 96 ms with attrs. With the standard library a check of one
YAML file takes more than twice as long.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import replace as replace
    from typing import NamedTuple as NamedTuple
else:
    from _collections import _tuplegetter as getter  # used by collections.namedtuple if it exists

    new = tuple.__new__
    # a named tuple's __new__ by the number of its fields
    NEW = (
        lambda _cls: new(_cls, ()),
        lambda _cls, a: new(_cls, (a,)),
        lambda _cls, a, b: new(_cls, (a, b)),
        lambda _cls, a, b, c: new(_cls, (a, b, c)),
        lambda _cls, a, b, c, d: new(_cls, (a, b, c, d)),
        lambda _cls, a, b, c, d, e: new(_cls, (a, b, c, d, e)),
        lambda _cls, a, b, c, d, e, f: new(_cls, (a, b, c, d, e, f)),
        lambda _cls, a, b, c, d, e, f, g: new(_cls, (a, b, c, d, e, f, g)),
        lambda _cls, a, b, c, d, e, f, g, h: new(_cls, (a, b, c, d, e, f, g, h)),
    )
    Function = type(NEW[0])

    def _new(fields, defaults):
        """A `__new__` with these field names as parameters."""
        if len(fields) < len(NEW):
            code = NEW[len(fields)].__code__.replace(co_varnames=("_cls", *fields), co_name="__new__")
            return Function(code, globals(), "__new__", tuple(defaults.values()))

        def many(_cls, *values, **given):
            taken = dict(zip(fields, values, strict=False))
            if len(values) > len(fields) or taken.keys() & given.keys():
                raise TypeError(f"{_cls.__name__} takes {len(fields)} values, each once")
            whole = {**defaults, **taken, **given}
            if len(whole) != len(fields) or given.keys() - set(fields):
                raise TypeError(f"{_cls.__name__} takes {', '.join(fields)}")
            return new(_cls, [whole[name] for name in fields])

        return many

    class _Tuple(tuple):
        """The methods of every named tuple."""

        __slots__ = ()

        @classmethod
        def _make(cls, values):
            made = new(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"{cls.__name__} takes {len(cls._fields)} values, not {len(made)}")
            return made

        def _replace(self, /, **changes):
            made = new(type(self), map(changes.pop, self._fields, self))
            if changes:
                raise ValueError(f"{type(self).__name__} has no field {', '.join(changes)}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            inner = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({inner})"

        def __getnewargs__(self):
            return tuple(self)

    class _NamedTuples(type):
        """Creates a named tuple from a class body: its annotated names become fields."""

        def __new__(meta, name, bases, body):
            if not bases:
                return super().__new__(meta, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body.pop(field) for field in fields if field in body}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"{name}: a field without default follows one with a default")
            body |= {field: getter(at, "") for at, field in enumerate(fields)}
            body |= {"__slots__": (), "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            body.setdefault("__new__", _new(fields, defaults))
            return type(name, (_Tuple,), body)

    class NamedTuple(metaclass=_NamedTuples):
        """A class body with annotated names becomes a named tuple."""

    class _Missing:
        """A field without default."""

    class _Factory:
        """A default that is computed for each record."""

        __slots__ = ("make",)

        def __init__(self, make):
            self.make = make

    def field(*, default=None, default_factory=None):
        """A field's default, or the function that computes it for each record."""
        return default if default_factory is None else _Factory(default_factory)

    def dataclass(*, frozen, slots=False, kw_only=False):
        """Turn a class into a record: its annotated names become fields."""

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
        if len(values) > len(setters):
            raise TypeError(f"{type(self).__name__} takes {len(setters)} values, not {len(values)}")
        left = iter(setters.items())
        for value, (_, set_it) in zip(values, left, strict=False):
            set_it(self, value)
        defaults = self._defaults
        for name, set_it in left:
            value = given.pop(name) if name in given else defaults[name]
            if value is _Missing:
                raise TypeError(f"{type(self).__name__} needs {name!r}")
            set_it(self, value.make() if type(value) is _Factory else value)
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
        """The attribute that `dataclasses` looks up, created on access."""

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
        """A copy with changed values."""
        if isinstance(record, tuple):
            return record._replace(**changes)
        unknown = changes.keys() - record._setters.keys()
        if unknown:
            raise TypeError(f"{type(record).__name__} has no field {', '.join(sorted(unknown))}")
        made = object.__new__(type(record))
        for (name, set_it), get in zip(record._setters.items(), record._getters, strict=True):
            set_it(made, changes[name] if name in changes else get(record))
        return made
