"""Reads the plan's values from a run: an argument's own value, or one computed from several."""

from __future__ import annotations

from collections.abc import Callable

from preflight.dialects.megatron.derivation_namespace import NotKnown, Run
from preflight.run.value import Value, derived, unknown
from preflight.source.finding import Edit
from preflight.source.typing_without_import import Any, Protocol


class Puts(Protocol):
    """Any object that creates the edits of an argument."""

    def put(self, name: str, value: object) -> tuple[Edit, ...]: ...


class Source:
    """Reads the plan's values: an argument's own value, or one computed from several."""

    def __init__(self, run: Run, writer: Puts) -> None:
        self.run, self.writer = run, writer

    def take(self, name: str) -> Value:
        """An argument in effect, with the edits that would write another value."""
        value = self.run.value(name)
        if value.edits is None and self.run.table.flags(name):
            return value._replace(edits=lambda raw: self.writer.put(name, raw))
        return value

    def compute(self, function: Callable[[Run], Any], of: str = "", note: str = "") -> Value:
        """A value computed from the run; unknown as soon as one of its arguments is. Its place is that of the argument
        `of`."""
        try:
            raw = function(self.run)
        except NotKnown as error:
            return unknown(error.because)
        except (TypeError, ValueError, ArithmeticError):
            return unknown("an argument that it is computed from is invalid")
        base = self.run.value(of) if of else None
        return base.derived(raw, note)._replace(edits=None) if base is not None and base.written else derived(raw, note)
