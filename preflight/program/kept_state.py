"""What a program is once it has been read, kept for the next call: its modules as they ran, its script and its parser.

It holds as long as the files that were read are the same, no module has come that was looked for in vain, and the
variables of the environment that the modules asked for have the same values. Bodies of functions that nothing has
called yet stay in the forms of their files.
"""

from __future__ import annotations

import marshal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from preflight.program.interpreter import Interpreter
from preflight.program.ir import VERSION
from preflight.program.kept_values import NotKept, read, written
from preflight.program.sources import FOLDER
from preflight.program.units import Unit
from preflight.program.values import Function, Value
from preflight.source import cache

FORM = 1
"""Goes up with every change of what is kept."""
MOST_STEPS = 500_000
"""Steps after which nothing is kept: no trainer takes a fifth of them."""
LARGEST = 16 << 20
"""Bytes that are kept at most."""


class Driver(Protocol):
    """What leads through a program, and has read something of it once, beside its modules."""

    def to_keep(self) -> tuple[Value, ...]:
        """What it has read."""

    def take_up(self, kept: tuple[Value, ...]) -> None:
        """Go on from what another one has read."""


class KeptState:
    """What is kept of one program for one machine. about: all that it depends on beside files and environment."""

    def __init__(self, run: Interpreter, driver: Driver, about: str, code: str) -> None:
        self.run, self.driver = run, driver
        self._about = f"{FORM} {VERSION} {sys.version_info[:3]} {cache.digest(code)} {about}"
        self._had: frozenset[str] = frozenset()
        self._bodies = run.sources.bodies

    def restore(self, environ: Mapping[str, Value], world: int | None, argv: Sequence[str]) -> bool:
        """Take up what an earlier call kept, if it still holds."""
        run, driver = self.run, self.driver
        try:
            asked = marshal.loads(cache.read_data(self._name("asked")) or b"")
            run.units["asked"] = Unit()
            run.units["asked"].asked.update(asked)
            known = run.environment(environ, world, argv)
            del run.units["asked"]
            kept = cache.read_data(self._name(repr(known)))
            files, data = marshal.loads(kept or b"")
        except (ValueError, EOFError, TypeError):
            return False
        if not run.sources.restore(files):
            return False
        try:
            whole = read(run, data)
        except Exception:  # of another library than it was made with
            return False
        run.modules.update(whole["modules"])
        run.symbols.update(whole["symbols"])
        run.units.update(whole["units"])
        run.enum_members.update(whole["enumerations"])
        run.field_types.update({id(field): held for field, held in whole["fields"]})
        run.kept.extend(field for field, _ in whole["fields"])
        run.lasting.update({id(container): (container, cause) for container, cause in whole["blurred"]})
        driver.take_up(whole["driver"])
        self._had = frozenset(run.units)
        return True

    def lacks_some(self) -> bool:
        """Whether more has been read than is kept."""
        more = not self.run.units.keys() <= self._had or self._bodies != self.run.sources.bodies
        return more and self.run.steps < MOST_STEPS

    def keep(self, environ: Mapping[str, Value], world: int | None, argv: Sequence[str]) -> None:
        """Keep what has been read."""
        run = self.run
        self._had, self._bodies = frozenset(run.units), run.sources.bodies
        run.begin()
        fields = {id(field): field for field in run.kept}
        whole = {
            "modules": run.modules,
            "symbols": run.symbols,
            "units": run.units,
            "enumerations": run.enum_members,
            "fields": [(field, run.field_types[at]) for at, field in fields.items() if at in run.field_types],
            "blurred": list(run.lasting.values()),
            "driver": self.driver.to_keep(),
        }
        try:
            data = written(run, whole, self._stub)
        except NotKept:
            return
        known = run.environment(environ, world, argv)
        if len(data) < LARGEST:
            cache.write_data(self._name("asked"), marshal.dumps(sorted(known)))
            name = self._name(repr(known))
            cache.write_data(name, marshal.dumps((run.sources.state(), data)))
            cache.sweep(FOLDER, time.time())

    def _name(self, what: str) -> str:
        return f"{FOLDER}/{cache.digest(f'{self._about} {what}')}.json"

    def _stub(self, function: Function) -> Any:
        """Where the body of a function is found again that was not called; None where it is to be kept."""
        node, scope = function.node, function.scope
        if node[0] != "FunctionDef" or function.body is not None or scope.kind not in ("module", "class"):
            return None
        if isinstance(node[5], tuple):
            return node[5]
        return (scope.module.file,) if scope.module.file in self.run.sources.known else None
