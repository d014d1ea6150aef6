"""Evaluates expressions with known and unknown values."""

from __future__ import annotations

import operator
from collections.abc import Callable

from preflight.program.interpreter_state import Done
from preflight.program.ir import Node
from preflight.program.operation_limits import safe_format
from preflight.program.operators import (
    OWN,
    Operators,
)
from preflight.program.values import (
    MISSING,
    Function,
    LoadedModules,
    Names,
    Scope,
    Symbol,
    Unknown,
    Value,
    both,
    opposite,
)
from preflight.source.typing_without_import import Any

UNARY: dict[str, Callable[[Any], Any]] = {"USub": operator.neg, "UAdd": operator.pos, "Invert": operator.inv}
CODES = {114: repr, 97: ascii}
MEMBERSHIP = ("In", "NotIn")


class _Undecided(Exception):
    """Raised if a comprehension iterates over an unknown value."""

    def __init__(self, cause: Unknown) -> None:
        self.cause = cause


class Expressions(Operators):
    """One method per kind of expression, selected by its name."""

    def evaluate(self, node: Node, scope: Scope) -> Value:
        """The value of an expression."""
        kind = node[0]
        if kind == "Name":
            return self.name(node[3], scope)
        if kind == "Constant":
            return node[3]
        handler = self.expressions.get(kind)
        if handler is None:
            return self.lost(f"{kind} expression")
        return handler(node, scope)

    expressions: dict[str, Callable[[Node, Scope], Value]]
    """The method of each kind of expression."""

    def _e_Constant(self, node: Node, scope: Scope) -> Value:
        return node[3]

    def _e_Name(self, node: Node, scope: Scope) -> Value:
        return self.name(node[3], scope)

    def _e_Attribute(self, node: Node, scope: Scope) -> Value:
        return self.attribute(self.evaluate(node[3], scope), node[4])

    def _e_Subscript(self, node: Node, scope: Scope) -> Value:
        owner, key = self.evaluate(node[3], scope), self.evaluate(node[4], scope)
        return self.loaded_module(owner, key) if isinstance(owner, LoadedModules) else self.item(owner, key)

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
        for key, value in zip(node[3], node[4], strict=False):
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

    def _e_BoolOp(self, node: Node, scope: Scope) -> Value:
        """Operands after an unknown one are evaluated only to find out whether one of them decides."""
        deciding = node[3] == "Or"
        cause: Unknown | None = None
        last: Value = None
        for operand in node[4]:
            last = self.evaluate(operand, scope) if cause is None else self._aside(operand, scope, cause)
            truth = self.truth(last)
            if isinstance(truth, Unknown):
                cause = both(cause, truth) if cause is not None else truth
            elif truth is deciding:
                return last if cause is None else (truth if not deciding else True)
        return last if cause is None else cause

    def _aside(self, operand: Node, scope: Scope, cause: Unknown) -> Value:
        """An operand that is only evaluated on some paths."""
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
            return opposite(truth) if isinstance(truth, Unknown) else not truth
        if isinstance(value, (Unknown, Symbol, *OWN)):
            return both(value, Unknown(gaps=() if isinstance(value, Unknown) else (f"-{value}",)))
        return self.native(UNARY[node[3]], [value])

    def _e_BinOp(self, node: Node, scope: Scope) -> Value:
        one, other = self.evaluate(node[3], scope), self.evaluate(node[5], scope)
        self.line = max(self.line, node[1]) if self.line <= node[1] <= self.end else self.line
        return self.arithmetic(node[4], one, other)

    def _e_Compare(self, node: Node, scope: Scope) -> Value:
        one, result = self.evaluate(node[3], scope), True
        for sign, operand in zip(node[4], node[5], strict=False):
            other = self._searched(operand, scope) if sign in MEMBERSHIP else self.evaluate(operand, scope)
            found = self.compare(sign, one, other)
            if found is False:
                return False
            result = found if found is not True and result is True else result
            one = other
        return result

    def _searched(self, node: Node, scope: Scope) -> Value:
        """The value in which a comparison looks for another; a dict for its keys, which may not all be known."""
        if node[0] != "Call" or node[4] or node[5] or node[3][0] != "Attribute" or node[3][4] != "keys":
            return self.evaluate(node, scope)
        owner = self.evaluate(node[3][3], scope)
        return owner if type(owner) is dict else self.call(self.attribute(owner, "keys"), [], {})

    def _e_IfExp(self, node: Node, scope: Scope) -> Value:
        truth = self.truth(self.evaluate(node[3], scope))
        if not isinstance(truth, Unknown):
            return self.evaluate(node[4] if truth else node[5], scope)
        sides = [
            self.explore(lambda chosen=chosen: Done("return", self.evaluate(chosen, scope)), where)  # type: ignore[misc]
            for chosen, where in ((node[4], opposite(truth)), (node[5], truth))
        ]
        one, other = sides
        if one.raised is not None and other.raised is not None:
            raise one.raised
        for side, good, where in ((one, other, opposite(truth)), (other, one, truth)):
            if side.raised is not None:
                self.note(side.raised, where)
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
        """A function object with its defaults."""
        made = Function(node, scope, name)
        made.defaults = [self.evaluate(one, scope) for one in parameters[6]]
        made.keyword_defaults = [self.evaluate(one, scope) if one is not None else MISSING for one in parameters[4]]
        made.owner = scope.owner if scope.kind == "function" else None
        return made

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
        return "".join(parts) if sum(map(len, parts)) < 1_000_000 else self.gap("a string that is too long")

    rendering = 0
    """Whether a message is being created; unknown parts may be omitted in it."""

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
        """Bind a value to the target on the left."""
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
        """The items of a generator are computed at once; values sent into it are unknown."""
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
