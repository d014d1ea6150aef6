"""Operations on known or unknown values: comparisons, arithmetic, items, truth and text."""

from __future__ import annotations

import enum
import operator
import typing
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from preflight.program import numpy_functions
from preflight.program.annotation_stand_ins import stand_in
from preflight.program.attributes import Attributes
from preflight.program.operation_limits import bounded, safe_arithmetic
from preflight.program.values import (
    MISSING,
    Bound,
    Class,
    Function,
    Module,
    Object,
    Partial,
    Perhaps,
    Raised,
    Symbol,
    Unknown,
    Value,
    both,
)

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "BitOr": operator.or_,
    "BitAnd": operator.and_,
    "BitXor": operator.xor,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
}
METHODS = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv", "Mod": "mod"}
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
SIGNS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}
ORDER = {"Eq": "eq", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge"}
OWN = (Object, Class, Function, Bound, Partial, Module)


class Operators(Attributes):
    """One method per operation."""

    def item(self, owner: Value, key: Value) -> Value:
        """owner[key]"""
        if isinstance(owner, Unknown):
            return owner
        if isinstance(owner, Symbol):
            return self.symbol(owner.name + "[]")
        if isinstance(owner, Class):
            return owner
        if isinstance(owner, Object):
            getter = owner.cls.find("__getitem__")
            if getter is not MISSING:
                return self.call(getter, [owner, key], {})
            return self.item(owner.data, key) if owner.data is not None else self.gap("item of an object")
        if _is_type(owner):
            return self._generic(owner, key)
        if isinstance(key, Unknown):
            return both(key, Unknown())
        if isinstance(key, tuple) and numpy_functions.is_array(owner) and any(isinstance(one, Unknown) for one in key):
            return both(*key)
        if id(owner) in self.blurred:
            return self.blurred[id(owner)][1]
        if isinstance(owner, dict):
            self.recall(owner, key) if self._hashable(key) else None
        if isinstance(owner, dict) and not self._hashable(key):
            return self.gap("an unhashable key")
        if owner is self.environ and key not in owner:
            if key not in self.facts.unset:  # what the program demands, its launcher or the scheduler may set
                return Unknown((f"environment variable {key}",))
            raise self.failure(KeyError(key))
        return self.native(operator.getitem, [owner, key])

    def _hashable(self, key: Value) -> bool:
        try:
            hash(key)
        except TypeError:
            return False
        return True

    def _generic(self, owner: Value, key: Value) -> Value:
        """A type with parameters, as in an annotation."""

        def plain(value: Value) -> Value:
            if isinstance(value, tuple):
                return tuple(plain(one) for one in value)
            return [plain(one) for one in value] if isinstance(value, list) else stand_in(value)

        if isinstance(owner, enum.EnumMeta):
            return key if isinstance(key, Unknown) else self.native(operator.getitem, [owner, key])
        try:
            return owner[plain(key)]
        except Exception:
            return self.symbol("typing.Any")

    def plain(self, value: Value) -> Value:
        """The container behind an object of a class derived from dict or list."""
        return value.data if isinstance(value, Object) and value.data is not None else value

    def arithmetic(self, sign: str, one: Value, other: Value) -> Value:
        """One operation on two values."""
        if sign == "BitOr" and (_is_type(one) or _is_type(other) or isinstance(one, Class) or isinstance(other, Class)):
            return self._union(one, other)
        if isinstance(one, Unknown) or isinstance(other, Unknown):
            found = both(one, other)
            return Unknown(found.facts, found.gaps, computed=True)
        if isinstance(one, Object) or isinstance(other, Object):
            return self._operated(sign, one, other)
        if isinstance(one, (Symbol, *OWN)) or isinstance(other, (Symbol, *OWN)):
            if sign == "Mod" and isinstance(one, str):
                return self.native(operator.mod, [one, str(self.text(other))])
            return self.gap(f"{sign} with {one if isinstance(one, Symbol) else other}")
        if sign not in ARITHMETIC:
            return self.gap(f"{sign} of values")
        array = numpy_functions.is_array(one) or numpy_functions.is_array(other)
        if not safe_arithmetic(sign, one, other) or (array and not numpy_functions.bounded(one, other)):
            return self.gap("a value that is too large")
        if sign == "Mod" and isinstance(one, str) and _holds_unknown(other):
            return Unknown()
        return self.native(ARITHMETIC[sign], [one, other])

    def _union(self, one: Value, other: Value) -> Value:
        if isinstance(one, Unknown) or isinstance(other, Unknown):
            return self.symbol("typing.Any")
        try:
            return typing.Union[stand_in(one), stand_in(other)]  # noqa: UP007
        except Exception:
            return self.symbol("typing.Any")

    def _operated(self, sign: str, one: Value, other: Value) -> Value:
        name = METHODS.get(sign)
        for owner, operand, prefix in ((one, other, "__"), (other, one, "__r")):
            if isinstance(owner, Object) and name is not None:
                method = owner.cls.find(f"{prefix}{name}__")
                if method is not MISSING:
                    return self.call(method, [owner, operand], {})
        return self.gap(f"{sign} of objects")

    def compare(self, sign: str, one: Value, other: Value) -> Value:
        """One comparison."""
        if sign in ("Is", "IsNot"):
            found = self._identical(one, other)
            return found if isinstance(found, Unknown) or sign == "Is" else not found
        if sign in ("In", "NotIn"):
            found = self._contained(one, other)
            return found if isinstance(found, Unknown) or sign == "In" else not found
        if isinstance(one, Unknown) or isinstance(other, Unknown):
            return _threshold(sign, one, other)
        if isinstance(one, Symbol) or isinstance(other, Symbol):
            return self._compared_symbols(sign, one, other)
        if (unsure := self.unsure(one) or self.unsure(other)) is not None:
            return unsure
        if isinstance(one, Object) or isinstance(other, Object):
            return self._compared_objects(sign, one, other)
        if sign in ("Eq", "NotEq") and isinstance(one, (list, tuple)) and type(one) is type(other):
            found = self._equal_rows(one, other)
            return found if isinstance(found, Unknown) or sign == "Eq" else not found
        if isinstance(one, dict) and (_holds_unknown(list(one.values())) or not isinstance(other, dict)):
            return self.gap("a comparison of dictionaries") if isinstance(other, dict) and one else sign == "NotEq"
        return self.native(COMPARED[sign], [one, other])

    def _identical(self, one: Value, other: Value) -> Value:
        if isinstance(one, Unknown) or isinstance(other, Unknown):
            return both(one, other)
        if isinstance(one, Symbol) and isinstance(other, Symbol):
            return one.name == other.name if "(" not in one.name else self.gap("instances of outside classes")
        if isinstance(one, Bound) and isinstance(other, Bound):
            return one.function is other.function and one.receiver is other.receiver
        return one is other

    def _contained(self, one: Value, other: Value) -> Value:
        if isinstance(other, (Unknown, Symbol)):
            return both(other, one) if isinstance(other, Unknown) else self.gap(f"in {other}")
        if isinstance(other, Object) and other.data is None:
            method = other.cls.find("__contains__")
            if method is not MISSING:
                return self.truth(self.call(method, [other, one], {}))
            items = self.items(other)
            return items if isinstance(items, Unknown) else self._contained(one, items)
        other = self.plain(other)
        if id(other) in self.blurred:
            return self.blurred[id(other)][1]
        if isinstance(other, (str, dict)) and not isinstance(one, (Unknown, Symbol, *OWN)):
            if isinstance(other, dict) and not self._hashable(one):
                return self.gap("an unhashable key")
            if isinstance(other, dict) and isinstance(perhaps := other.get(one), Perhaps):
                return perhaps
            return self.native(operator.contains, [other, one])
        rows = self.items(other) if not isinstance(other, str) else Unknown()
        if isinstance(rows, Unknown):
            return both(one, rows) if isinstance(one, Unknown) else rows
        unsure: Unknown | None = None
        for row in rows:
            self.step()
            found = True if one is row and not isinstance(one, Unknown) else self.compare("Eq", one, row)
            if found is True:
                return True
            if isinstance(found, Unknown):
                unsure = found
        return False if unsure is None else unsure

    def _compared_symbols(self, sign: str, one: Value, other: Value) -> Value:
        if sign in ("Eq", "NotEq"):
            if isinstance(one, Symbol) and isinstance(other, Symbol):
                if one.name == other.name:
                    return sign == "Eq"
                if "(" not in one.name + other.name:
                    return sign == "NotEq"
            else:
                value = other if isinstance(one, Symbol) else one
                if value is None or isinstance(value, (str, int, Function, Class, enum.Enum)):
                    return sign == "NotEq"
        return self.gap(f"a comparison with {one if isinstance(one, Symbol) else other}")

    def _compared_objects(self, sign: str, one: Value, other: Value) -> Value:
        name = ORDER.get("Eq" if sign == "NotEq" else sign, "")
        for owner, operand in ((one, other), (other, one)):
            method = owner.cls.find(f"__{name}__") if isinstance(owner, Object) else MISSING
            if isinstance(method, Function):
                found = self.truth(self.call(method, [owner, operand], {}))
                return found if isinstance(found, Unknown) or sign != "NotEq" else not found
        if sign not in ("Eq", "NotEq"):
            return self.gap("an ordering of objects")
        if isinstance(one, Object) and isinstance(other, Object):
            if one is not other and one.cls is other.cls and one.cls.fields is not None:
                rows = [list(value.names.values()) for value in (one, other)]
                found = self._equal_rows(rows[0], rows[1])
                return found if isinstance(found, Unknown) or sign == "Eq" else not found
            if one.data is not None or other.data is not None:
                return self.compare(sign, self.plain(one), self.plain(other))
        elif (one.data if isinstance(one, Object) else other.data) is not None:
            return self.compare(sign, self.plain(one), self.plain(other))
        return (one is other) is (sign == "Eq")

    def _equal_rows(self, one: Value, other: Value) -> Value:
        if len(one) != len(other):
            return False
        unsure: Unknown | None = None
        for a, b in zip(one, other, strict=False):
            self.step()
            found = a is b or self.compare("Eq", a, b)
            if found is False:
                return False
            if isinstance(found, Unknown):
                unsure = found
        return True if unsure is None else unsure

    def unsure(self, value: Value) -> Unknown | None:
        """Why the length of a container and its keys are unknown; None if they are known."""
        if id(value) in self.blurred:
            return self.blurred[id(value)][1]
        perhaps = [one for one in value.values() if isinstance(one, Perhaps)] if isinstance(value, dict) else ()
        return both(*perhaps) if perhaps else None

    def truth(self, value: Value) -> bool | Unknown:
        """Whether a value counts as true."""
        if value is None or value is True or value is False:
            return bool(value)
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Symbol):
            return True if "(" not in value.name else Unknown(gaps=(f"the truth of {value.name}",))
        if isinstance(value, Object):
            for name in ("__bool__", "__len__"):
                method = value.cls.find(name)
                if method is not MISSING:
                    return self.truth(self.call(method, [value], {}))
            return (
                bool(value.data) if value.data is not None else not value.cls.opaque or self.gap("truth of an object")
            )
        if isinstance(value, (*OWN, type)):
            return True
        if (unsure := self.unsure(value)) is not None:
            sure = isinstance(value, dict) and not all(isinstance(one, Perhaps) for one in value.values())
            return True if sure and id(value) not in self.blurred else unsure
        try:
            return bool(value)
        except Exception:
            return self.gap("a truth")

    texts: Mapping[str, str] = MappingProxyType({})
    """What str() gives of external objects that are not printed by their name."""

    def text(self, value: Value) -> str | Unknown:
        """The result of str()."""
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Symbol):
            return self.texts.get(value.name, value.name)
        if isinstance(value, Object):
            for name in ("__str__", "__repr__"):
                method = value.cls.find(name)
                if isinstance(method, Function):
                    found = self.call(method, [value], {})
                    return found if isinstance(found, (str, Unknown)) else Unknown()
            return f"{value.cls.name}(...)"
        if isinstance(value, (Class, Function, Module)):
            return value.name
        if isinstance(value, enum.Enum) and (method := self._of_enum(type(value), "__str__")) is not MISSING:
            found = self.call(method, [value], {})
            return found if isinstance(found, (str, Unknown)) else Unknown()
        if not bounded(value):
            return self.gap("a string that is too long")
        found = self.native(str, [value])
        return found if isinstance(found, (str, Unknown)) else Unknown()

    def items(self, value: Value) -> list[Value] | Unknown:
        """The items of any iterable."""
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Object):
            method = value.cls.find("__iter__")
            if method is not MISSING:
                return self.items(self.call(method, [value], {}))
            if value.cls.fields is not None and value.cls.find("_fields") is not MISSING:
                missing = self.gap("a field that is not set")
                return [value.names.get(name, missing) for name in value.cls.fields]
            return self.items(value.data) if value.data is not None else self.gap("the items of an object")
        if isinstance(value, (Symbol, *OWN)):
            return self.gap(f"the items of {self.text(value)}")
        if isinstance(value, range) and len(value) > 1_000_000:
            return self.gap("a range that is too long")
        if (unsure := self.unsure(value)) is not None:
            return unsure
        try:
            return list(value)
        except Raised:
            raise
        except TypeError as error:
            raise self.failure(error) from None


def _is_type(value: Value) -> bool:
    module = getattr(type(value), "__module__", "")
    return isinstance(value, type) or module == "typing" or getattr(value, "__module__", "") == "typing"


def _holds_unknown(value: Value) -> bool:
    if isinstance(value, (list, tuple)):
        return any(isinstance(one, (Unknown, Symbol, *OWN)) for one in value[:1000])
    return isinstance(value, (Unknown, Symbol, *OWN))


def _threshold(sign: str, one: Value, other: Value) -> Unknown:
    """The operand of a comparison with an unknown fact becomes part of its name: "transformer-engine >= 2.1"."""
    found = both(one, other)
    known = other if isinstance(one, Unknown) else one
    fact = next(iter(found.facts), "")
    if (
        len(found.facts) == 1
        and not found.computed
        and not isinstance(known, Unknown)
        and _short(known)
        and " >" not in fact
    ):
        shown = (
            sign if isinstance(one, Unknown) else {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE"}.get(sign, sign)
        )
        return Unknown((f"{fact} {SIGNS[shown]} {known}",), found.gaps)
    return found


def _short(value: Value) -> bool:
    plain = isinstance(value, (str, int, float, tuple)) or type(value).__name__ == "Version"
    return plain and not isinstance(value, bool) and len(str(value)) < 30
