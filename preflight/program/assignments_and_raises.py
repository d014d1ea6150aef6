"""Statements that refuse, targets of assignments, and deletions."""

from __future__ import annotations

import operator

from preflight.program.expressions import Expressions
from preflight.program.ir import Node
from preflight.program.numpy_functions import is_array
from preflight.program.values import (
    MISSING,
    Builtin,
    Object,
    Raised,
    Scope,
    Unknown,
    Value,
    both,
)


class Targets(Expressions):
    """How values are bound to names, attributes and items."""

    def _s_Delete(self, node: Node, scope: Scope) -> None:
        for target in node[3]:
            if target[0] == "Name":
                if target[3] in scope.names:
                    self.drop(scope.names, target[3])
            elif target[0] == "Attribute":
                owner = self.evaluate(target[3], scope)
                method = owner.cls.find("__delattr__") if isinstance(owner, Object) else MISSING
                names = self.names_of(owner)
                if method is not MISSING:
                    self.call(method, [owner, target[4]], {})
                elif names is not None and target[4] in names:
                    self.drop(names, target[4])
            elif target[0] == "Subscript":
                self._delete_item(self.evaluate(target[3], scope), self.evaluate(target[4], scope))

    def _delete_item(self, owner: Value, key: Value) -> None:
        owner = self.plain(owner)
        if isinstance(key, Unknown) or not isinstance(owner, (dict, list)):
            return
        if isinstance(owner, dict) and self._hashable(key) and key in owner:
            self.drop(owner, key)
            return
        self.touch(owner)
        self.native(operator.delitem, [owner, key])

    def content_methods(self, data: Value) -> dict[str, Builtin]:
        """The methods behind the operations of a dict or list."""
        kind = dict if isinstance(data, dict) else list

        def fill(*given: Value, **named: Value) -> None:
            content = self.call_native(kind, list(given), dict(named))
            if not isinstance(content, (dict, list)):
                self.blur(data, both(content, Unknown()))
            elif given or named:
                self.touch(data)
                data.update(content) if isinstance(data, dict) else data.extend(content)

        return {
            "__init__": Builtin("__init__", fill),
            "__getitem__": Builtin("__getitem__", lambda key: self.item(data, key)),
            "__setitem__": Builtin("__setitem__", lambda key, value: self.assign_item(data, key, value)),
            "__delitem__": Builtin("__delitem__", lambda key: self._delete_item(data, key)),
            "__contains__": Builtin("__contains__", lambda key: self.compare("In", key, data)),
            "__len__": Builtin("__len__", lambda: self.call_native(len, [data], {})),
        }

    def call_native(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Call a built-in function of Python."""
        raise NotImplementedError

    def assign(self, target: Node, value: Value, scope: Scope) -> None:
        """Bind a value to the target on the left."""
        kind = target[0]
        if kind == "Name":
            self.put(self._holder(target[3], scope), target[3], value)
        elif kind == "Attribute":
            self.assign_attribute(self.evaluate(target[3], scope), target[4], value)
        elif kind == "Subscript":
            self.assign_item(self.evaluate(target[3], scope), self.evaluate(target[4], scope), value)
        elif kind in ("Tuple", "List"):
            self._spread(target[3], value, scope)
        elif kind == "Starred":
            self.assign(target[3], value, scope)

    def _holder(self, name: str, scope: Scope) -> dict[str, Value]:
        if name in scope.globals:
            return scope.module.names
        if name in scope.nonlocals:
            outer = scope.outer
            while outer is not None:
                if name in outer.names and outer.kind == "function":
                    return outer.names
                outer = outer.outer
        return scope.names

    def assign_item(self, owner: Value, key: Value, value: Value) -> None:
        """owner[key] = value"""
        if isinstance(owner, Object):
            method = owner.cls.find("__setitem__")
            if method is not MISSING:
                self.call(method, [owner, key, value], {})
                return
        owner = self.plain(owner)
        if isinstance(owner, dict):
            if isinstance(key, Unknown) or not self._hashable(key):
                self.blur(owner, both(key, Unknown()))
            else:
                self.put(owner, key, value)
        elif isinstance(owner, list):
            if isinstance(key, Unknown):
                self.blur(owner, key)
            else:
                self.touch(owner)
                self.native(operator.setitem, [owner, key, value])
        elif is_array(owner):
            parts = [value, *(key if isinstance(key, tuple) else [key])]
            if any(isinstance(one, Unknown) for one in parts):
                self.blur(owner, both(*parts))
            else:
                self.touch(owner)
                self.native(operator.setitem, [owner, key, value])

    def _spread(self, targets: tuple[Node, ...], value: Value, scope: Scope) -> None:
        items = self.items(value)
        if isinstance(items, Unknown):
            for target in targets:
                self.assign(target, items, scope)
            return
        starred = next((at for at, one in enumerate(targets) if one[0] == "Starred"), None)
        if starred is not None and len(items) >= len(targets) - 1:
            after = len(targets) - starred - 1
            stop = len(items) - after
            items = [*items[:starred], items[starred:stop], *items[stop:]]
        if len(items) != len(targets):
            word = "not enough" if len(items) < len(targets) else "too many"
            raise self.failure(ValueError(f"{word} values to unpack (expected {len(targets)}, got {len(items)})"))
        for target, item in zip(targets, items, strict=False):
            self.assign(target, item, scope)


class Refusing(Targets):
    """How a refusal arises, with its message and the arguments that it read."""

    def _s_Assert(self, node: Node, scope: Scope) -> None:
        mark = len(self.reads)
        truth = self.truth(self.evaluate(node[3], scope))
        if truth is True:
            return
        place, reads = self.place(), self.condition(mark)
        message = self._message(node[4], scope) if node[4] is not None else ""
        raised = Raised(AssertionError(message), place, reads=reads)
        if truth is False:
            raise raised
        self.note(raised, truth)

    def _message(self, node: Node, scope: Scope) -> str:
        """A text with its values; unknown ones become a question mark."""
        self.rendering += 1
        height = len(self.reads)
        try:
            found = self.text(self.evaluate(node, scope))
            return found if isinstance(found, str) else ""
        except Raised:
            return ""
        finally:
            self.rendering -= 1
            del self.reads[height:]

    def _s_Raise(self, node: Node, scope: Scope) -> None:
        place, reads = self.place(), self.condition()
        holder: Scope | None = scope
        while holder is not None and not holder.caught:
            holder = holder.outer
        caught = holder.caught[-1] if holder is not None else None
        if node[3] is None:
            raise caught if caught is not None else Raised(RuntimeError("no exception to raise again"), place)
        self.rendering += 1
        try:
            value = self.evaluate(node[3], scope)
        finally:
            self.rendering -= 1
        if isinstance(value, type) and issubclass(value, BaseException):
            value = value()
        sure = caught is None or caught.sure
        if not isinstance(value, BaseException):
            shown = self.text(value)
            value = RuntimeError(shown if isinstance(shown, str) else "")
        if caught is not None and caught.sure and type(value) is type(caught.error):
            place, reads = caught.place, caught.reads
        raise Raised(value, place, sure=sure, reads=reads)
