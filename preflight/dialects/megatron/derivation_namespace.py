"""The namespace of one run while the framework derives its values: read attributes, derive, switch.

A step reads attributes as upstream does (`run.tensor_model_parallel_size`). Reading one that is unknown ends the step,
and everything that the step was to derive becomes unknown for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from preflight.dialects.megatron.options import Table, destinations
from preflight.loaders.document import Unknown
from preflight.run.arguments import Switch
from preflight.run.value import Origin, Value, default, derived, unknown
from preflight.run.version_ranges import matches
from preflight.source.typing_without_import import Any

ARGUMENTS = "megatron/training/arguments.py"


class NotKnown(Exception):
    """Raised if a step needs an unknown value. because: why it is unknown."""

    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because


class Run:
    """Values by name: derived or changed, otherwise explicit, otherwise the default of the framework's version."""

    def __init__(self, table: Table, versions: Mapping[str, str], written: Mapping[str, Value]) -> None:
        self.table, self.versions, self.written = table, versions, written
        self.core = versions["megatron"]
        self.effective: dict[str, Value] = {}
        self.switches: list[Switch] = []
        self.settled: set[str] = set()
        self.handed: dict[str, Value] = {}

    def is_core(self, releases: str) -> bool:
        """Whether the Megatron-LM release is in a range."""
        return matches(self.core, releases)

    def value(self, name: str) -> Value:
        """The present value."""
        found = self.effective.get(name) or self.written.get(name)
        return found if found is not None else self.default(name)

    def default(self, name: str) -> Value:
        """The default; an argument that exists only in other versions is off, any other name is unknown."""
        found = self.table.values.get(name)
        if found is not None:
            return found
        if name in destinations():
            return default(None, f"{self.table.label} does not have this option")
        return unknown(f"{name} is unknown")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raw = self.value(name).raw
        if isinstance(raw, Unknown):
            raise NotKnown(raw.because or f"{name} is unknown")
        return raw

    def derive(self, name: str, raw: object, note: str = "", of: str = "") -> None:
        """Set a derived value; its place is that of the argument `of`, or of the argument with the same name."""
        base = self.written.get(of or name)
        if base is None:
            self.effective[name] = derived(raw, note)
        else:
            self.effective[name] = Value(
                raw, Origin.DERIVED, base.setting, note, base.edits if of in ("", name) else None
            )

    def lose(self, name: str, because: str) -> None:
        """Mark a value as unknown; an explicit one keeps its place."""
        base = self.written.get(name)
        lost = Unknown(because)
        self.effective[name] = (
            base._replace(raw=lost, origin=Origin.UNKNOWN, note=because) if base is not None else unknown(because)
        )

    def switch(self, name: str, after: object, cause: str, upstream: str, site: str = "") -> None:
        """The framework changes an argument silently. site: the statement, if its location in each release is recorded
        as evidence."""
        before = self.value(name)
        if before.known and before.raw == after:
            return
        self.switches.append(Switch(name, before.raw, after, cause, upstream, site))
        self.derive(name, after, cause)


Step = Callable[[Run], None]


def derives(*names: str) -> Callable[[Step], tuple[Step, tuple[str, ...]]]:
    """Turn a function into a step: its results become unknown if one of its inputs is."""
    return lambda function: (function, names)


def perform(run: Run, steps: Sequence[tuple[Step, tuple[str, ...]]]) -> None:
    """Run steps in order."""
    for step, names in steps:
        before = {name: run.effective.get(name) for name in names}
        try:
            step(run)
        except (NotKnown, TypeError, ValueError, ArithmeticError, IndexError) as error:
            because = (
                error.because if isinstance(error, NotKnown) else "an argument that it is computed from is invalid"
            )
            for name in names:
                if run.effective.get(name) is before[name]:
                    run.lose(name, because)
