"""Statements that refuse: assert and raise."""

from __future__ import annotations

from preflight.program.ir import Node
from preflight.program.targets import Targets
from preflight.program.values import (
    Raised,
    Scope,
)


class Refusing(Targets):
    """How a refusal comes about, with its message and the arguments that it read."""

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
        """A text with its values; what is unknown in it is a question mark."""
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
