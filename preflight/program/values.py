"""The values of the program's expressions: plain Python values, or one of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from preflight.program.ir import Node
from preflight.program.verdict import Place
from preflight.source.typing_without_import import Any

Value = Any
"""Any value of the interpreted program: the interpreter checks its type at every step."""
Names = dict[str, Value]


class Unknown:
    """An unknown value.

    facts: the facts about the machine that would decide it, in words. gaps: constructs that were not understood.
    computed: it is computed from facts and is not itself one.
    """

    __slots__ = ("computed", "facts", "gaps")

    def __init__(self, facts: Iterable[str] = (), gaps: Iterable[str] = (), computed: bool = False) -> None:
        self.facts, self.gaps, self.computed = frozenset(facts), frozenset(gaps), computed

    def __repr__(self) -> str:
        return "?"


class Perhaps(Unknown):
    """The value of a key that exists only on some paths."""

    __slots__ = ()


class LoadedModules(Unknown):
    """The loaded modules by name: those of the program are known, others are not."""

    __slots__ = ()


class Symbol:
    """An object of an external package, known only by its dotted name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Missing:
    """The absence of a value."""

    __slots__ = ()


MISSING = Missing()


class Lazy:
    """An import that is resolved when its name is first used. name: in the module; None for the module itself."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str | None) -> None:
        self.module, self.name = module, name


class Module:
    """A file of the program, with its names."""

    __slots__ = ("file", "name", "names", "package", "shown")

    def __init__(self, name: str, file: str, shown: str, package: bool) -> None:
        self.name, self.file, self.shown, self.package = name, file, shown, package
        self.names: Names = {"__name__": name, "__file__": file, "__doc__": None}


class Scope:
    """The names of one function call, class body or module. receiver: the object of super() without arguments."""

    __slots__ = (
        "caught",
        "globals",
        "kind",
        "module",
        "names",
        "nonlocals",
        "outer",
        "owner",
        "qualified",
        "receiver",
        "yielded",
    )

    def __init__(self, names: Names, outer: Scope | None, module: Module, kind: str, qualified: str) -> None:
        self.names, self.outer, self.module, self.kind, self.qualified = names, outer, module, kind, qualified
        self.globals: frozenset[str] = frozenset()
        self.nonlocals: frozenset[str] = frozenset()
        self.owner: Class | None = None
        self.receiver: Value = None
        self.caught: list[Raised] = []
        self.yielded: list[Value] | None = None


class Function:
    """A function of the program. owner: the class that defines it."""

    __slots__ = ("active", "body", "defaults", "keyword_defaults", "name", "names", "node", "owner", "scope", "twin")

    def __init__(self, node: Node, scope: Scope, name: str) -> None:
        self.node, self.scope, self.name = node, scope, name
        self.defaults: list[Value] = []
        self.keyword_defaults: list[Value] = []
        self.names: Names = {}
        self.owner: Class | None = None
        self.body: tuple[Node, ...] | None = None
        self.active = 0
        self.twin: Value = None
        """An equivalent that need not be interpreted; None if it was never requested."""

    @property
    def qualified(self) -> str:
        """The dotted name within its module."""
        return f"{self.scope.qualified}.{self.name}".lstrip(".")

    @property
    def dotted(self) -> str:
        """The dotted name with its module."""
        return f"{self.scope.module.name}.{self.qualified}"


class Bound:
    """A function bound to an object."""

    __slots__ = ("function", "receiver")

    def __init__(self, function: Value, receiver: Value) -> None:
        self.function, self.receiver = function, receiver


class Property:
    """An attribute that a function computes. cached: computed once."""

    __slots__ = ("getter", "setter")

    def __init__(self, getter: Value, setter: Value = None) -> None:
        self.getter, self.setter = getter, setter


class Static:
    """A static method."""

    __slots__ = ("function",)

    def __init__(self, function: Value) -> None:
        self.function = function


class ClassMethod:
    """A class method."""

    __slots__ = ("function",)

    def __init__(self, function: Value) -> None:
        self.function = function


class Partial:
    """A callable with some arguments already given."""

    __slots__ = ("arguments", "function", "keywords")

    def __init__(self, function: Value, arguments: tuple[Value, ...], keywords: Mapping[str, Value]) -> None:
        self.function, self.arguments, self.keywords = function, arguments, keywords


class Decorator:
    """A decorator of the standard library that returns the decorated object. kind: its kind."""

    __slots__ = ("arguments", "kind")

    def __init__(self, kind: str, arguments: tuple[Value, ...] = ()) -> None:
        self.kind, self.arguments = kind, arguments


class Builtin:
    """An operation of the interpreter that the program calls like a function."""

    __slots__ = ("name", "run")

    def __init__(self, name: str, run: Any) -> None:
        self.name, self.run = name, run


class Class:
    """A class of the program. fields: of a dataclass, in order. payload: the container that it derives from."""

    __slots__ = ("annotations", "bases", "fields", "frozen", "lineage", "module", "name", "names", "payload")

    def __init__(self, name: str, bases: list[Value], names: Names, module: Module) -> None:
        self.name, self.bases, self.names, self.module = name, bases, names, module
        self.annotations: dict[str, tuple[Node, Scope]] = {}
        self.fields: dict[str, Any] | None = None
        self.frozen = False
        self.lineage: list[Class] = lineage(self)
        self.payload: type | None = next((one for one in bases if one in (dict, list)), None)
        for one in self.lineage[1:]:
            self.payload = self.payload or one.payload

    @property
    def opaque(self) -> bool:
        """Whether it has a base class outside the program."""
        return any(isinstance(base, (Symbol, Unknown)) for one in self.lineage for base in one.bases)

    @property
    def all_fields(self) -> dict[str, Any] | None:
        """The fields of the class or of its nearest dataclass base."""
        return next((one.fields for one in self.lineage if one.fields is not None), None)

    def derives_from(self, name: str) -> bool:
        """Whether it derives from an external class, given by dotted name."""
        return any(isinstance(base, Symbol) and base.name == name for one in self.lineage for base in one.bases)

    def find(self, name: str) -> Value:
        """An attribute of the class or of its bases."""
        for one in self.lineage:
            if name in one.names:
                return one.names[name]
        return MISSING

    def order(self) -> list[Value]:
        """The order in which attributes are looked up, with the bases outside the program in their places."""
        parents = [base for base in self.bases if isinstance(base, (Class, Symbol))]
        return _linear(self, [base.order() if isinstance(base, Class) else [base] for base in parents], parents)

    def inherits(self, other: object) -> bool:
        """Whether it is another class or derives from it."""
        return any(one is other for one in self.lineage)


def lineage(cls: Class) -> list[Class]:
    """The order in which attributes are looked up (C3), among the classes of the program."""
    parents = [base for base in cls.bases if isinstance(base, Class)]
    return _linear(cls, [list(base.lineage) for base in parents], parents)


def _linear(cls: Class, orders: list[list[Any]], parents: list[Any]) -> list[Any]:
    rows = [*orders, list(parents)]
    found: list[Any] = [cls]
    while rows := [row for row in rows if row]:
        heads = (row[0] for row in rows if not any(row[0] in other[1:] for other in rows))
        head = next(heads, rows[0][0])
        found.append(head)
        rows = [[one for one in row if one is not head] for row in rows]
    return found


class Object:
    """An instance of a class of the program. data: its contents as a dict or list, if its class derives from one."""

    __slots__ = ("cls", "data", "names")

    def __init__(self, cls: Class) -> None:
        self.cls = cls
        self.names: Names = {}
        self.data: Value = cls.payload() if cls.payload is not None else None


class Super:
    """The result of super(): the attributes after a class in the lookup order of an object's class."""

    __slots__ = ("cls", "receiver")

    def __init__(self, cls: Class, receiver: Value) -> None:
        self.cls, self.receiver = cls, receiver


class Raised(Exception):
    """An exception of the program. sure: it is raised by the program, not by unsupported code."""

    def __init__(self, error: BaseException, place: Place, *, sure: bool = True, reads: tuple[str, ...] = ()) -> None:
        super().__init__(str(error))
        self.error, self.place, self.sure, self.reads = error, place, sure, reads


class Exhausted(Exception):
    """Raised when a limit is reached: nothing is known."""


def both(*values: Value) -> Unknown:
    """The unknown result of values of which at least one is unknown."""
    found = [one for one in values if isinstance(one, Unknown)]
    if len(found) == 1:
        return found[0]
    return Unknown(
        frozenset().union(*(one.facts for one in found)) if found else (),
        frozenset().union(*(one.gaps for one in found)) if found else (),
        any(one.computed for one in found),
    )


OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def opposite(value: Unknown) -> Unknown:
    """The negation of an unknown condition: "capability >= 8" becomes "capability < 8"."""
    facts = []
    for fact in value.facts:
        name, sign, bound = parted(fact)
        facts.append(f"{name} {OPPOSITE[sign]} {bound}" if sign else fact)
    return Unknown(facts, value.gaps, value.computed)


def parted(fact: str) -> tuple[str, str, str]:
    """A fact as its subject and its comparison: "capability >= 8"; without comparison the latter are
    empty."""
    words = fact.rsplit(" ", 2)
    return (words[0], words[1], words[2]) if len(words) == 3 and words[1] in OPPOSITE else (fact, "", "")


OPAQUE_VALUES = (Unknown, Symbol, Function, Bound, Property, Static, ClassMethod, Partial, Class, Object, Module, Super)
"""Values that are not plain Python values."""
