"""The shared base of the interpreter: its state, its limits, and the journal of changes on a path."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from preflight.program.ir import Node
from preflight.program.machine_facts import PACKAGE, Environment, Facts, distribution
from preflight.program.numpy_functions import is_array
from preflight.program.sources import Sources
from preflight.program.values import (
    MISSING,
    Exhausted,
    Function,
    Module,
    Names,
    Object,
    Perhaps,
    Raised,
    Scope,
    Symbol,
    Unknown,
    Value,
    opposite,
    parted,
)
from preflight.program.verdict import Budget, Place

Journal = dict[tuple[int, Value], tuple[Value, Value, Value]]
"""(container, key) → container, key, value before; without a key the whole content."""
TICKS = 2048
SCALARS = (str, int, float, bool, type(None), bytes, complex)


class Done(NamedTuple):
    """An early exit from a block. kind: return, break, continue; maybe: it may also continue, and the unknown fact that
    decides."""

    kind: str
    value: Value = None
    maybe: bool = False
    cause: Unknown | None = None


class Side(NamedTuple):
    """The result of one path: its end, and its writes, which are undone."""

    done: Done | None
    raised: Raised | None
    writes: dict[tuple[int, Value], tuple[Value, Value, Value, Value]]


class Note(NamedTuple):
    """A refusal on some paths, and the facts on which they depend."""

    raised: Raised
    cause: Unknown
    stage: str


class Engine:
    """The state of one interpretation."""

    def __init__(self, sources: Sources, facts: Facts, budget: Budget) -> None:
        self.sources, self.facts, self.budget = sources, facts, budget
        self.modules: dict[str, Module] = {}
        self.symbols: dict[str, Symbol] = {}
        self.journals: list[Journal] = []
        self.causes: list[Unknown] = []
        self.notes: list[Note] = []
        self.gaps: dict[str, Place] = {}
        self.remarks: list[tuple[str, Place]] = []
        self.stage = ""
        self.argv: list[str] = []
        self.environ = Environment()
        self.scope: Scope | None = None
        self.line = self.end = 0
        self.depth = self.steps = self.trying = 0
        self.started = time.thread_time()
        self.guards: list[tuple[str, ...]] = []
        self.reads: list[str] = []
        self.origins: dict[int, tuple[Value, dict[Value, tuple[str, ...]]]] = {}
        self.arguments: Names | None = None
        self.known_arguments: frozenset[str] = frozenset()
        self.writes: dict[str, Place] = {}
        self.blurred: dict[int, tuple[Value, Unknown]] = {}
        self.unread_options: list[str] = []
        self.walked: list[Function] = []
        """Functions that were walked for this command and need not be walked again."""
        self.lasting: dict[int, tuple[Value, Unknown]] = {}
        """State that stays unknown between the checked commands."""
        self.entered: set[str] = set()

    # bounds

    def step(self) -> None:
        """Count one step; limits end the interpretation."""
        self.steps += 1
        if self.steps > self.budget.steps:
            raise Exhausted(f"more than {self.budget.steps} steps")
        if not self.steps % TICKS and time.thread_time() - self.started > self.budget.seconds:
            raise Exhausted(f"more than {self.budget.seconds} seconds of processor time")

    def place(self) -> Place:
        """The current statement."""
        if self.scope is None:
            return Place("", 0, 0)
        return Place(self.scope.module.shown, self.line, max(self.line, self.end), self.scope.qualified)

    def gap(self, what: str) -> Unknown:
        """Note an unsupported construct that contains no code that could refuse."""
        place = self.place()
        return Unknown(gaps=(f"{what} at {place}",))

    def lost(self, what: str, cause: Unknown | None = None) -> Unknown:
        """Note an unsupported construct that contains unexecuted code of the program."""
        self.gaps.setdefault(what, self.place())
        return cause or self.gap(what)

    def failure(self, error: BaseException, *, sure: bool = True) -> Raised:
        """An exception at the statement that runs now."""
        return Raised(error, self.place(), sure=sure, reads=self.condition())

    # names that a condition reads

    def condition(self, since: int | None = None) -> tuple[str, ...]:
        """The arguments read since a mark in this condition, then those of the enclosing conditions."""
        found = list(reversed(self.reads[since:])) if since is not None else []
        for guard in reversed(self.guards):
            found.extend(guard)
        return tuple(dict.fromkeys(found))

    def read_since(self, mark: int) -> tuple[str, ...]:
        """The arguments read since a mark, without repetition, the last first."""
        if len(self.reads) == mark:
            return ()
        found = tuple(dict.fromkeys(reversed(self.reads[mark:])))[:16]
        if len(self.reads) > 20_000:
            del self.reads[:-64]
        return found

    def originate(self, container: Value, key: Value, reads: tuple[str, ...]) -> None:
        """Record the arguments from which a value was computed."""
        held = self.origins.get(id(container))
        if held is None:
            if not reads:
                return
            held = self.origins[id(container)] = (container, {})
        if reads:
            held[1][key] = reads
        else:
            held[1].pop(key, None)

    def recall(self, container: Value, key: Value) -> None:
        """Mark the arguments from which a value was computed as read."""
        held = self.origins.get(id(container))
        if held is not None and key in held[1]:
            self.reads.extend(held[1][key])

    # the journal

    def put(self, container: dict[Value, Value], key: Value, value: Value) -> None:
        """Write into a container."""
        if self.journals:
            journal = self.journals[-1]
            if (id(container), key) not in journal:
                journal[id(container), key] = (container, key, container.get(key, MISSING))
        if container is self.arguments:
            self.writes[key] = self.place()
        container[key] = value

    def put_all(self, container: dict[Value, Value], values: dict[Value, Value]) -> None:
        """Write several keys into a container."""
        if self.journals:
            journal, at = self.journals[-1], id(container)
            for key in values:
                if (at, key) not in journal:
                    journal[at, key] = (container, key, container.get(key, MISSING))
        if container is self.arguments:
            self.writes.update(dict.fromkeys(values, self.place()))
        container.update(values)

    def drop(self, container: dict[Value, Value], key: Value) -> None:
        """Remove a key from a container."""
        self.put(container, key, None)
        del container[key]

    def touch(self, container: Value) -> None:
        """Record a container before it changes as a whole."""
        if self.journals:
            journal = self.journals[-1]
            if (id(container), MISSING) not in journal:
                journal[id(container), MISSING] = (container, MISSING, _copied(container))

    def explore(self, run: Callable[[], Done | None], cause: Unknown) -> Side:
        """Run one possible path, and undo its writes."""
        if len(self.journals) > self.budget.forks:
            raise Exhausted(f"more than {self.budget.forks} nested paths")
        journal: Journal = {}
        self.journals.append(journal)
        self.causes.append(cause)
        done, raised = None, None
        height, guards, trying, scope, depth = (
            len(self.journals),
            len(self.guards),
            self.trying,
            self.scope,
            self.depth,
        )
        try:
            done = run()
        except Raised as error:
            raised = error
        finally:
            self.causes.pop()
            del self.journals[height - 1 :]
            del self.guards[guards:]
            self.trying, self.scope, self.depth = trying, scope, depth
            writes = self.undo(journal)
        return Side(done, raised, writes)

    def undo(self, journal: Journal) -> dict[tuple[int, Value], tuple[Value, Value, Value, Value]]:
        """Restore the previous state, last change first; returns the writes."""
        writes = {}
        for key, (container, name, before) in reversed(journal.items()):
            if name is MISSING:
                writes[key] = (container, name, before, _copied(container))
                _fill(container, before)
            else:
                writes[key] = (container, name, before, container.get(name, MISSING))
                if before is MISSING:
                    container.pop(name, None)
                else:
                    container[name] = before
        return dict(reversed(writes.items()))

    @staticmethod
    def revert(journal: Journal) -> None:
        """Restore the previous values, without the written ones."""
        for container, name, before in reversed(journal.values()):
            if name is MISSING:
                _fill(container, before)
            elif before is MISSING:
                container.pop(name, None)
            else:
                container[name] = before

    def replay(self, side: Side) -> None:
        """Repeat the writes of a path."""
        for container, name, _, after in side.writes.values():
            self._write(container, name, after)

    def _write(self, container: Value, name: Value, after: Value) -> None:
        if name is MISSING:
            self.touch(container)
            _fill(container, after)
        elif after is not MISSING:
            self.put(container, name, after)
        elif name in container:
            self.drop(container, name)

    def merge(self, one: Side, other: Side, cause: Unknown) -> None:
        """Write the values on which both paths agree; others become unknown."""
        for key in {**one.writes, **other.writes}:
            container, name, before, _ = one.writes.get(key) or other.writes[key]
            first = one.writes[key][3] if key in one.writes else before
            second = other.writes[key][3] if key in other.writes else before
            if name is MISSING:
                self._write(container, name, _blend(first, second, self, cause))
                if _differ(first, second):
                    self.blur(container, cause)
            elif first is not MISSING or second is not MISSING:
                self._write(container, name, self.join(first, second, cause))

    def join(self, one: Value, other: Value, cause: Unknown) -> Value:
        """A value that is either of two."""
        if one is other or same(one, other):
            return one
        return _mixed(one, other, cause)

    def blur(self, container: Value, cause: Unknown) -> None:
        """Make the contents of a container unknown."""
        self.blurred[id(container)] = (container, cause)
        if not self.journals:
            self.lasting[id(container)] = (container, cause)

    def note(self, raised: Raised, cause: Unknown) -> None:
        """Record a refusal on some paths."""
        facts = cause.facts.union(*(one.facts for one in self.causes))
        gaps = cause.gaps.union(*(one.gaps for one in self.causes))
        self.notes.append(Note(raised, Unknown(facts, gaps), self.stage))

    # names that the other parts provide

    def evaluate(self, node: Node, scope: Scope) -> Value:
        """The value of an expression."""
        raise NotImplementedError

    def block(self, body: Iterable[Node], scope: Scope) -> Done | None:
        """Run statements."""
        raise NotImplementedError

    def call(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Call anything."""
        raise NotImplementedError

    def attribute(self, owner: Value, name: str) -> Value:
        """An attribute of anything."""
        raise NotImplementedError

    def assign_attribute(self, owner: Value, name: str, value: Value) -> None:
        """Set an attribute of anything."""
        raise NotImplementedError

    def truth(self, value: Value) -> bool | Unknown:
        """Whether a value counts as true."""
        raise NotImplementedError

    def items(self, value: Value) -> list[Value] | Unknown:
        """The items of an iterable."""
        raise NotImplementedError

    def compare(self, operator: str, one: Value, other: Value) -> Value:
        """One comparison."""
        raise NotImplementedError

    def text(self, value: Value) -> str | Unknown:
        """The result of str()."""
        raise NotImplementedError

    def load(self, name: str) -> Value:
        """A module by its name."""
        raise NotImplementedError

    def imported(self, module: str, name: str) -> Value:
        """A name of a module."""
        raise NotImplementedError

    def force(self, value: Value) -> Value:
        """The object behind an import."""
        raise NotImplementedError

    def symbol(self, name: str) -> Value:
        """An object outside the program."""
        raise NotImplementedError


def same(one: Value, other: Value) -> bool:
    """Whether two values are equal for sure and of the same type."""
    if type(one) is not type(other):
        return False
    if isinstance(one, SCALARS):
        return bool(one == other)
    if isinstance(one, (tuple, list)):
        if len(one) != len(other) or len(one) > 1000:
            return False
        return all(
            a is b or (isinstance(a, SCALARS) and type(a) is type(b) and a == b)
            for a, b in zip(one, other, strict=False)
        )
    if isinstance(one, Unknown):
        return bool(one.facts == other.facts and one.gaps == other.gaps)
    return False


def _mixed(one: Value, other: Value, cause: Unknown) -> Unknown:
    """A value that is the first if the cause holds, otherwise the second."""
    if isinstance(one, bool) and isinstance(other, bool):
        return cause if one else opposite(cause)
    for value in (one, other):
        if isinstance(value, Unknown) and _is_version(value, cause):
            return value
    facts, gaps = set(cause.facts), set(cause.gaps)
    for value in (one, other):
        if isinstance(value, Unknown):
            facts |= value.facts
            gaps |= value.gaps
    kind = Perhaps if any(value is MISSING or isinstance(value, Perhaps) for value in (one, other)) else Unknown
    return kind((parted(fact)[0] for fact in facts), gaps, computed=True)


def _is_version(value: Unknown, cause: Unknown) -> bool:
    """Whether a value is the version of a package, and the cause is whether that package is installed."""
    if value.computed or value.gaps or cause.gaps or len(value.facts) != 1 or len(cause.facts) != 1:
        return False
    package = next(iter(cause.facts)).partition(f"{PACKAGE} ")[2]
    return bool(package) and distribution(package) in value.facts


def _copied(container: Value) -> Value:
    return container.copy() if hasattr(container, "copy") else list(container)


def _differ(one: Value, other: Value) -> bool:
    """Whether a container is unknown after two paths: with different lengths, an array with different numbers, or a
    set with different members."""
    if is_array(one):
        return one.shape != other.shape or bool((one != other).any())
    return one != other if isinstance(one, set) else len(one) != len(other)


def _fill(container: Value, content: Value) -> None:
    if is_array(container):
        container[...] = content
    elif isinstance(container, list):
        container[:] = content
    else:
        container.clear()
        getattr(container, "extend" if not isinstance(container, (dict, set)) else "update")(content)


def _blend(one: Value, other: Value, engine: Engine, cause: Unknown) -> Value:
    """The contents of a container changed on two paths."""
    if isinstance(one, list) and isinstance(other, list):
        longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
        head = [engine.join(a, b, cause) for a, b in zip(longer, shorter, strict=False)]
        return [*head, *(_mixed(value, None, cause) for value in longer[len(shorter) :])]
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: engine.join(one.get(key, MISSING), other.get(key, MISSING), cause) for key in {**one, **other}}
    if isinstance(one, set) and isinstance(other, set):
        return one | other
    return one


def is_object(value: Value) -> bool:
    """Whether a value is an instance of a class of the program."""
    return isinstance(value, Object)
