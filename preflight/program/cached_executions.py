"""Code that runs once, for the first command that reaches it: module bodies, the started script, the parser.

The records of such a unit, in addition to its resulting values, are repeated for each command that reaches it, so that
a verdict does not depend on previously checked commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from preflight.program.interpreter_state import Engine, Note
from preflight.program.machine_facts import SIZE, Environment, Facts
from preflight.program.sources import Sources
from preflight.program.values import MISSING, Lazy, Names, Value
from preflight.program.verdict import Budget, Place

WORLD, COMMAND = "number of processes", "command line"
"""Queried facts in addition to environment variables."""


class Unit:
    """The records of one execution. needs: the units that it reached; dropped: records of these that it handled;
    environ: variables that it set; asked: those that it read, and other parts of a command that it examined."""

    __slots__ = (
        *("asked", "dropped", "entered", "environ", "files", "gaps"),
        *("needs", "notes", "options", "remarks", "settled"),
    )

    def __init__(self) -> None:
        self.needs: dict[str, None] = {}
        self.notes: list[Note] = []
        self.dropped: list[Note] = []
        self.gaps: dict[str, Place] = {}
        self.settled: frozenset[str] = frozenset()
        self.remarks: list[tuple[str, Place]] = []
        self.entered: set[str] = set()
        self.files: list[str] = []
        self.options: list[str] = []
        self.environ: dict[str, Value] = {}
        self.asked: set[str] = set()

    @property
    def silent(self) -> bool:
        """Whether nothing in it could change a verdict."""
        return not (self.notes or self.gaps or self.options)


class Units(Engine):
    """Runs such code, and reuses its results."""

    def __init__(self, sources: Sources, facts: Facts, budget: Budget) -> None:
        super().__init__(sources, facts, budget)
        self.environ = Environment(facts.environ)
        self.units: dict[str, Unit] = {}
        self.active: set[str] = set()
        self.running: list[Unit] = []
        self.resolved: dict[tuple[int, str], tuple[Names, str, Lazy, Value]] = {}
        self.stage_of: dict[int, str] = {}

    def begin(self) -> None:
        """Drop the state of one command."""
        self.active.clear()
        self.stage_of.clear()
        self.sources.asked = []
        self.unread_options.clear()
        for names, key, lazy, value in self.resolved.values():
            if names.get(key) is value:
                names[key] = lazy
        self.resolved.clear()

    def resolve(self, names: Names, key: str, lazy: Lazy, value: Value) -> None:
        """Replace an import by its object, for this command."""
        names[key] = value
        self.resolved[id(names), key] = (names, key, lazy, value)

    def as_imported(self, names: Names, key: str) -> Value:
        """The value of a name of a module, or the import if it was one."""
        held = self.resolved.get((id(names), key))
        return held[2] if held is not None and held[3] is names[key] else names[key]

    @contextmanager
    def permanent(self, name: str = "") -> Iterator[Unit]:
        """Keep the effects of code, regardless of the path that reached it. name: its key for reuse."""
        unit = Unit()
        held = self.scope, self.line, self.end, self.journals, self.causes, self.trying, self.guards
        noted = self.notes, self.gaps, self.remarks, self.entered, self.sources.asked
        self.journals, self.causes, self.trying, self.guards = [], [], 0, []
        self.notes, self.gaps, self.remarks, self.entered, self.sources.asked = [], {}, [], set(), []
        before, options = self.environ.plain(), len(self.unread_options)
        self.running.append(unit)
        self.environ.asked, opened = unit.asked, self.environ.open
        try:
            yield unit
            self._finish(unit, before, options)
            if name:
                self.units[name] = unit
                self.active.add(name)
        finally:
            self.running.pop()
            self.environ.asked = self.running[-1].asked if self.running else None
            if self.environ.open > opened:
                unit.asked.add(SIZE)
                self.environ.open = opened
            left = self.notes, self.gaps, self.remarks, self.entered, self.sources.asked
            self.notes, self.gaps, self.remarks, self.entered, self.sources.asked = noted
            self._merge(*left)
            self.scope, self.line, self.end, self.journals, self.causes, self.trying, self.guards = held
            if self.running:
                above, kept = self.running[-1], self.units.get(name) is unit
                above.needs.update({name: None} if kept else unit.needs)
                above.asked.update(() if kept else unit.asked)
                above.dropped += [*unit.dropped, *left[0]]
                above.settled |= unit.settled.union(left[1])

    def _finish(self, unit: Unit, before: dict[str, Value], options: int) -> None:
        """Return the records so far. So far, the dropped and settled records are all records of the units below."""
        unit.notes, unit.gaps, unit.remarks = list(self.notes), dict(self.gaps), list(self.remarks)
        unit.entered, unit.files = set(self.entered), list(self.sources.asked)
        unit.options = self.unread_options[options:]
        kept = set(map(id, unit.notes))
        unit.dropped = [one for one in unit.dropped if id(one) not in kept]
        unit.settled -= unit.gaps.keys()
        after = self.environ.plain()
        for key in {**before, **after}:
            if before.get(key, MISSING) is not after.get(key, MISSING):
                unit.environ[key] = after.get(key, MISSING)

    def ask(self, what: str) -> None:
        """Record a read of a fact that differs between commands."""
        if self.running:
            self.running[-1].asked.add(what)

    def environment(self, environ: Mapping[str, Value], world: int | None, argv: Sequence[str]) -> dict[str, str]:
        """The facts read by units, with their values for a command."""
        values = {**environ, WORLD: world, COMMAND: repr(list(argv))}
        asked = sorted(set().union(*(one.asked for one in self.units.values())))
        return {name: _shown(values[name]) if name in values else "" for name in asked}

    def use(self, name: str) -> None:
        """Reuse a unit that has run: its notes count for this command."""
        if self.running:
            self.running[-1].needs[name] = None
        unit = self.units.get(name)
        if unit is None or name in self.active:
            return
        self.active.add(name)
        for one in unit.needs:
            self.use(one)
        dropped = set(map(id, unit.dropped))
        self.notes[:] = [one for one in self.notes if id(one) not in dropped]
        for gap in unit.settled:
            self.gaps.pop(gap, None)
        self._merge(unit.notes, unit.gaps, unit.remarks, unit.entered, unit.files)
        self.unread_options.extend(unit.options)
        for key, value in unit.environ.items():
            dict.pop(self.environ, key, None)
            if value is not MISSING:
                dict.__setitem__(self.environ, key, value)
        if self.running:
            self.running[-1].dropped += unit.notes
            self.running[-1].settled |= unit.gaps.keys()

    def _merge(
        self,
        notes: list[Note],
        gaps: dict[str, Place],
        remarks: list[tuple[str, Place]],
        entered: set[str],
        files: list[str],
    ) -> None:
        known = set(map(id, self.notes))
        for note in notes:
            if id(note) not in known:
                self.notes.append(note)
                self.stage_of.setdefault(id(note), self.stage)
        for what, place in gaps.items():
            self.gaps.setdefault(what, place)
        self.remarks += [one for one in remarks if one not in self.remarks]
        self.entered |= entered
        self.sources.asked += [one for one in files if one not in self.sources.asked]


def _shown(value: Value) -> str:
    return f"={value}" if isinstance(value, (str, int)) else f"?{sorted(getattr(value, 'facts', ()))}"
