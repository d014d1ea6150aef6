"""Expressions, evaluated with values that are known or unknown."""

from __future__ import annotations

import enum
import operator
import typing
from collections.abc import Callable
from typing import Any

from preflight.program.attributes import Attributes
from preflight.program.engine import Done
from preflight.program.guards import safe_arithmetic, safe_format
from preflight.program.ir import Node
from preflight.program.values import (
    MISSING,
    Bound,
    Class,
    Function,
    Module,
    Names,
    Object,
    Partial,
    Raised,
    Scope,
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
UNARY: dict[str, Callable[[Any], Any]] = {"USub": operator.neg, "UAdd": operator.pos, "Invert": operator.inv}
OWN = (Object, Class, Function, Bound, Partial, Module)
CODES = {114: repr, 97: ascii}


class _Undecided(Exception):
    """A comprehension runs over something unknown."""

    def __init__(self, cause: Unknown) -> None:
        self.cause = cause


class Expressions(Attributes):
    """One method a kind of expression, found by its name."""

    def evaluate(self, node: Node, scope: Scope) -> Value:
        """The value of an expression."""
        handler = getattr(self, "_e_" + node[0], None)
        if handler is None:
            return self.lost(f"{node[0]} expression")
        return handler(node, scope)

    def _e_Constant(self, node: Node, scope: Scope) -> Value:
        return node[3]

    def _e_Name(self, node: Node, scope: Scope) -> Value:
        return self.name(node[3], scope)

    def _e_Attribute(self, node: Node, scope: Scope) -> Value:
        return self.attribute(self.evaluate(node[3], scope), node[4])

    def _e_Subscript(self, node: Node, scope: Scope) -> Value:
        owner, key = self.evaluate(node[3], scope), self.evaluate(node[4], scope)
        return self.item(owner, key)

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
        if id(owner) in self.blurred:
            return self.blurred[id(owner)][1]
        if isinstance(owner, dict):
            self.recall(owner, key) if self._hashable(key) else None
        if isinstance(owner, dict) and not self._hashable(key):
            return self.gap("an unhashable key")
        if owner is self.environ and key not in owner:
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

    def _e_Slice(self, node: Node, scope: Scope) -> Value:
        parts = [self.evaluate(one, scope) if one is not None else None for one in node[3:6]]
        if any(isinstance(one, (Unknown, Symbol)) for one in parts):
            return both(*parts)
        return slice(*parts)

    def _e_Tuple(self, node: Node, scope: Scope) -> Value:
        found = self.elements(node[3], scope)
        return found if isinstance(found, Unknown) else tuple(found)

    def _e_List(self, node: Node, scope: Scope) -> Value:
        return self.elements(node[3], scope)

    def _e_Set(self, node: Node, scope: Scope) -> Value:
        found = self.elements(node[3], scope)
        if isinstance(found, Unknown):
            return found
        return both(*found) if any(isinstance(one, Unknown) for one in found) else self.native(set, [found])

    def elements(self, nodes: tuple[Node, ...], scope: Scope) -> list[Value] | Unknown:
        """Values one after another, starred ones spread."""
        found: list[Value] = []
        for node in nodes:
            if node[0] == "Starred":
                items = self.items(self.evaluate(node[3], scope))
                if isinstance(items, Unknown):
                    return items
                found.extend(items)
            else:
                found.append(self.evaluate(node, scope))
        return found

    def _e_Starred(self, node: Node, scope: Scope) -> Value:
        return self.evaluate(node[3], scope)

    def _e_Dict(self, node: Node, scope: Scope) -> Value:
        found: dict[Value, Value] = {}
        for key, value in zip(node[3], node[4]):
            if key is None:
                spread = self.plain(self.evaluate(value, scope))
                if not isinstance(spread, dict):
                    return both(spread, self.gap("** of something unknown"))
                found.update(spread)
                continue
            name = self.evaluate(key, scope)
            content = self.evaluate(value, scope)
            if isinstance(name, Unknown):
                return name
            if not self._hashable(name):
                return self.gap("an unhashable key")
            found[name] = content
        return found

    def plain(self, value: Value) -> Value:
        """The container behind an object of a class that derives from dict or list."""
        return value.data if isinstance(value, Object) and value.data is not None else value

    def _e_BoolOp(self, node: Node, scope: Scope) -> Value:
        """Operands after an unknown one are evaluated only to learn whether one of them decides."""
        deciding = node[3] == "Or"
        cause: Unknown | None = None
        last: Value = None
        for operand in node[4]:
            if cause is None:
                last = self.evaluate(operand, scope)
            else:
                last = self._aside(operand, scope, cause)
            truth = self.truth(last)
            if isinstance(truth, Unknown):
                cause = both(cause, truth) if cause is not None else truth
            elif truth is deciding:
                return last if cause is None else (truth if not deciding else True)
        return last if cause is None else cause

    def _aside(self, operand: Node, scope: Scope, cause: Unknown) -> Value:
        """An operand that is reached on some paths only."""
        found: list[Value] = []
        side = self.explore(lambda: found.append(self.evaluate(operand, scope)), cause)
        if side.raised is not None:
            self.note(side.raised, cause)
            return cause
        nothing = side._replace(writes={})
        self.merge(side, nothing, cause)
        return found[0]

    def _e_UnaryOp(self, node: Node, scope: Scope) -> Value:
        value = self.evaluate(node[4], scope)
        if node[3] == "Not":
            truth = self.truth(value)
            return truth if isinstance(truth, Unknown) else not truth
        if isinstance(value, (Unknown, Symbol, *OWN)):
            return both(value, Unknown(gaps=() if isinstance(value, Unknown) else (f"-{value}",)))
        return self.native(UNARY[node[3]], [value])

    def _e_BinOp(self, node: Node, scope: Scope) -> Value:
        one, other = self.evaluate(node[3], scope), self.evaluate(node[5], scope)
        self.line = max(self.line, node[1]) if self.line <= node[1] <= self.end else self.line
        return self.arithmetic(node[4], one, other)

    def arithmetic(self, sign: str, one: Value, other: Value) -> Value:
        """One operation on two values."""
        if sign == "BitOr" and (_is_type(one) or _is_type(other) or isinstance(one, Class) or isinstance(other, Class)):
            return self._union(one, other)
        if isinstance(one, Unknown) or isinstance(other, Unknown):
            return both(one, other)
        if isinstance(one, Object) or isinstance(other, Object):
            return self._operated(sign, one, other)
        if isinstance(one, (Symbol, *OWN)) or isinstance(other, (Symbol, *OWN)):
            if sign == "Mod" and isinstance(one, str):
                return self.native(operator.mod, [one, str(self.text(other))])
            return self.gap(f"{sign} with {one if isinstance(one, Symbol) else other}")
        if not safe_arithmetic(sign, one, other):
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
        if id(one) in self.blurred or id(other) in self.blurred:
            return self.blurred.get(id(one), self.blurred.get(id(other), (None, Unknown())))[1]
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
            return self.gap("an order of objects")
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
        for a, b in zip(one, other):
            self.step()
            found = a is b or self.compare("Eq", a, b)
            if found is False:
                return False
            if isinstance(found, Unknown):
                unsure = found
        return True if unsure is None else unsure

    def _e_Compare(self, node: Node, scope: Scope) -> Value:
        one, result = self.evaluate(node[3], scope), True
        for sign, operand in zip(node[4], node[5]):
            other = self.evaluate(operand, scope)
            found = self.compare(sign, one, other)
            if found is False:
                return False
            result = found if found is not True and result is True else result
            one = other
        return result

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
        if id(value) in self.blurred:
            return self.blurred[id(value)][1]
        try:
            return bool(value)
        except Exception:
            return self.gap("a truth")

    def _e_IfExp(self, node: Node, scope: Scope) -> Value:
        truth = self.truth(self.evaluate(node[3], scope))
        if not isinstance(truth, Unknown):
            return self.evaluate(node[4] if truth else node[5], scope)
        sides = [
            self.explore(lambda chosen=chosen: Done("return", self.evaluate(chosen, scope)), truth)  # type: ignore[misc]
            for chosen in (node[4], node[5])
        ]
        one, other = sides
        if one.raised is not None and other.raised is not None:
            raise one.raised
        for side, good in ((one, other), (other, one)):
            if side.raised is not None:
                self.note(side.raised, truth)
                self.replay(good)
                return good.done.value if good.done else None
        self.merge(one, other, truth)
        return self.join(one.done.value if one.done else None, other.done.value if other.done else None, truth)

    def _e_NamedExpr(self, node: Node, scope: Scope) -> Value:
        value = self.evaluate(node[4], scope)
        self.put(scope.names, node[3][3], value)
        return value

    def _e_Lambda(self, node: Node, scope: Scope) -> Value:
        return self.function(node, scope, "<lambda>", node[3])

    def function(self, node: Node, scope: Scope, name: str, parameters: Node) -> Function:
        """A function with its defaults."""
        made = Function(node, scope, name)
        made.defaults = [self.evaluate(one, scope) for one in parameters[6]]
        made.keyword_defaults = [self.evaluate(one, scope) if one is not None else MISSING for one in parameters[4]]
        made.owner = scope.owner if scope.kind == "function" else None
        return made

    def text(self, value: Value) -> str | Unknown:
        """What str() gives."""
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Symbol):
            return value.name
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
        found = self.native(str, [value])
        return found if isinstance(found, (str, Unknown)) else Unknown()

    def _e_JoinedStr(self, node: Node, scope: Scope) -> Value:
        parts: list[str] = []
        for one in node[3]:
            if one[0] == "Constant":
                parts.append(str(one[3]))
                continue
            part = self._formatted(one, scope)
            parts.append(part if isinstance(part, str) else "?")
            if isinstance(part, Unknown) and not self.rendering:
                return part
        return "".join(parts) if sum(map(len, parts)) < 1_000_000 else self.gap("a text that is too long")

    rendering = 0
    """Whether a message is made, in which what is unknown may be left out."""

    def _formatted(self, node: Node, scope: Scope) -> str | Unknown:
        value = self.evaluate(node[3], scope)
        spec = self.evaluate(node[5], scope) if node[5] is not None else ""
        if isinstance(value, (Unknown, Symbol, *OWN)) or isinstance(spec, Unknown):
            return self.text(value)
        if node[4] in CODES:
            value = self.native(CODES[node[4]], [value])
        if not spec or not safe_format(spec):
            return self.text(value)
        found = self.native(format, [value, spec])
        return found if isinstance(found, (str, Unknown)) else Unknown()

    def _e_FormattedValue(self, node: Node, scope: Scope) -> Value:
        return self._formatted(node, scope)

    def _gather(self, generators: tuple[Node, ...], scope: Scope, emit: Callable[[Scope], None]) -> None:
        inner = Scope({}, scope, scope.module, "function", scope.qualified)
        inner.owner, inner.receiver = scope.owner, scope.receiver

        def run(at: int) -> None:
            if at == len(generators):
                emit(inner)
                return
            target, source, tests, waits = generators[at]
            items = self.items(self.evaluate(source, inner if at else scope))
            if isinstance(items, Unknown) or waits:
                raise _Undecided(items if isinstance(items, Unknown) else self.gap("async for"))
            for item in items:
                self.step()
                self.assign(target, item, inner)
                if all(self._holds(test, inner) for test in tests):
                    run(at + 1)

        run(0)

    def _holds(self, test: Node, scope: Scope) -> bool:
        truth = self.truth(self.evaluate(test, scope))
        if isinstance(truth, Unknown):
            raise _Undecided(truth)
        return truth

    def assign(self, target: Node, value: Value, scope: Scope) -> None:
        """Bind a value to what stands on the left."""
        raise NotImplementedError

    def _e_ListComp(self, node: Node, scope: Scope) -> Value:
        found: list[Value] = []
        try:
            self._gather(node[4], scope, lambda inner: found.append(self.evaluate(node[3], inner)))
        except _Undecided as error:
            return error.cause
        return found

    _e_GeneratorExp = _e_ListComp

    def _e_SetComp(self, node: Node, scope: Scope) -> Value:
        found = self._e_ListComp(node, scope)
        if isinstance(found, list) and any(isinstance(one, Unknown) for one in found):
            return both(*found)
        return found if isinstance(found, Unknown) else self.native(set, [found])

    def _e_DictComp(self, node: Node, scope: Scope) -> Value:
        found: Names = {}

        def emit(inner: Scope) -> None:
            key = self.evaluate(node[3], inner)
            if isinstance(key, Unknown) or not self._hashable(key):
                raise _Undecided(key if isinstance(key, Unknown) else self.gap("an unhashable key"))
            found[key] = self.evaluate(node[4], inner)

        try:
            self._gather(node[5], scope, emit)
        except _Undecided as error:
            return error.cause
        return found

    def _e_Yield(self, node: Node, scope: Scope) -> Value:
        """The items of a generator are made at once; what is sent into it is unknown."""
        value = self.evaluate(node[3], scope) if node[3] is not None else None
        holder: Scope | None = scope
        while holder is not None and holder.yielded is None:
            holder = holder.outer
        if holder is None or holder.yielded is None:
            return self.lost("yield")
        holder.yielded.append(value)
        return self.gap("what is sent into a generator")

    def _e_YieldFrom(self, node: Node, scope: Scope) -> Value:
        items = self.items(self.evaluate(node[3], scope))
        if isinstance(items, Unknown) or scope.yielded is None:
            return self.lost("yield from")
        scope.yielded.extend(items)
        return None

    def items(self, value: Value) -> list[Value] | Unknown:
        """The items of anything that is iterated over."""
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Object):
            method = value.cls.find("__iter__")
            if method is not MISSING:
                return self.items(self.call(method, [value], {}))
            if value.cls.fields is not None and value.cls.find("_fields") is not MISSING:
                return [value.names[name] for name in value.cls.fields]
            return self.items(value.data) if value.data is not None else self.gap("the items of an object")
        if isinstance(value, (Symbol, *OWN)):
            return self.gap(f"the items of {self.text(value)}")
        if isinstance(value, range) and len(value) > 1_000_000:
            return self.gap("a range that is too long")
        if (blurred := self.blurred.get(id(value))) is not None:
            return blurred[1]
        try:
            return list(value)
        except Raised:
            raise
        except TypeError as error:
            raise self.failure(error) from None


def stand_in(value: Value) -> Any:
    """A type of Python's own in place of a class that lies elsewhere, for an annotation."""
    if isinstance(value, (Symbol, Unknown, Class)):
        name = getattr(value, "name", "Any").rpartition(".")[2]
        return type(name if name.isidentifier() else "Any", (), {})
    return value


def _is_type(value: Value) -> bool:
    module = getattr(type(value), "__module__", "")
    return isinstance(value, type) or module == "typing" or getattr(value, "__module__", "") == "typing"


def _holds_unknown(value: Value) -> bool:
    if isinstance(value, (list, tuple)):
        return any(isinstance(one, (Unknown, Symbol, *OWN)) for one in value[:1000])
    return isinstance(value, (Unknown, Symbol, *OWN))


def _threshold(sign: str, one: Value, other: Value) -> Unknown:
    """What an unknown fact is compared with becomes part of its name: "transformer-engine >= 2.1"."""
    found = both(one, other)
    known = other if isinstance(one, Unknown) else one
    fact = next(iter(found.facts), "")
    if len(found.facts) == 1 and not isinstance(known, Unknown) and _short(known) and " >" not in fact:
        shown = (
            sign if isinstance(one, Unknown) else {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE"}.get(sign, sign)
        )
        return Unknown((f"{fact} {SIGNS[shown]} {known}",), found.gaps)
    return found


def _short(value: Value) -> bool:
    plain = isinstance(value, (str, int, float, tuple)) or type(value).__name__ == "Version"
    return plain and not isinstance(value, bool) and len(str(value)) < 30
