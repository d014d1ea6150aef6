"""The way in: what a program says of one command."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from preflight.program.conclude import conclude
from preflight.program.facts import Facts
from preflight.program.interpreter import Interpreter
from preflight.program.kept_parser import NeedsBuilding
from preflight.program.megatron import Megatron
from preflight.program.mindformers import FILE, MindFormers
from preflight.program.mindformers import PRESENT as WITH_MINDFORMERS
from preflight.program.mindspeed import ADAPTORS, CAPABILITY, PRESENT, VERSION, MindSpeed
from preflight.program.sources import Sources
from preflight.program.values import Exhausted, Raised
from preflight.program.verdict import Budget, Machine, Program, Verdict

MINDFORMERS = "mindformers"
READS_CONFIGURATIONS = frozenset((MINDFORMERS,))
"""Frameworks whose scripts read a file of settings."""
NAMED = ("--config", FILE)
"""How the script of MindFormers is told its configuration."""
STACK = 128 << 20
FRAMES = 20_000


class Session:
    """A program that was read for one machine, to be asked about many commands.

    strict: an error of the interpreter itself is raised, not taken for a program that cannot be read.
    """

    strict = False
    _used = False

    def __init__(self, program: Program, machine: Machine, budget: Budget) -> None:
        self.sources = Sources(program.roots, budget, program.entry)
        self.program, self.machine, self.budget = program, _machine(program, machine), budget
        self._read()

    def _read(self) -> None:
        """Read the program from the start."""
        program = self.program
        self.run = Interpreter(self.sources, Facts(self.machine, {}, None), self.budget)
        self.driver: Megatron | MindFormers
        if program.framework in ADAPTORS:
            self.driver = MindSpeed(self.run, program.framework, program.entry)
        elif program.framework == MINDFORMERS:
            self.driver = MindFormers(self.run, program.entry)
        else:
            self.driver = Megatron(self.run, program.entry)

    def judge(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        world_size: int | None,
        config: Mapping[str, Any] | None = None,
    ) -> Verdict:
        """What the program says of one command, which names a file with this configuration."""
        if self._used and isinstance(self.driver, MindSpeed):
            self._read()  # what patches replace depends on the command
        self._used = True
        if isinstance(self.driver, MindFormers):
            self.driver.document, argv = config, [*NAMED, *argv]
        self._begin(argv, env, world_size)
        try:
            raised = self._driven()
            return conclude(self.run, self.driver.stages, raised, self.driver.initial, _destinations(argv))
        except NeedsBuilding:
            pass
        except Exhausted as error:
            return self._unread(str(error))
        except (RecursionError, MemoryError) as error:
            return self._unread(type(error).__name__)
        except Exception as error:
            if self.strict:
                raise
            return self._unread(f"{type(error).__name__}: {error} ({self.run.place()})")
        finally:
            self._end()
        self.driver.forget()
        return self.judge(argv, env, world_size, config)

    def _driven(self) -> Raised | None:
        try:
            self.driver()
        except Raised as raised:
            return raised
        return None

    def _unread(self, why: str) -> Verdict:
        return Verdict("unread", why=why, stages=tuple(self.driver.stages), files=tuple(self.sources.read))

    def _begin(self, argv: Sequence[str], env: Mapping[str, str], world_size: int | None) -> None:
        run = self.run
        run.facts = Facts(self.machine, env, world_size)
        run.environ.clear()
        run.environ.update(run.facts.environ)
        run.argv[:] = [self.program.entry or "main.py", *argv]
        run.notes[:] = run.lasting.notes
        run.gaps.clear()
        run.gaps.update(run.lasting.gaps)
        run.remarks.clear()
        run.writes.clear()
        run.origins.clear()
        run.reads.clear()
        run.guards.clear()
        run.causes.clear()
        run.entered.clear()
        run.blurred.clear()
        run.blurred.update(run.lasting.blurred)
        run.arguments, run.known_arguments = None, frozenset()
        run.steps = run.depth = run.trying = 0
        run.started = time.thread_time()
        run.scope = None
        self.driver.stages.clear()
        self.driver.initial.clear()
        run.journals[:] = [{}]

    def _end(self) -> None:
        first = self.run.journals[0]
        self.run.journals.clear()
        self.run.undo(first)


def _machine(program: Program, machine: Machine) -> Machine:
    """What is known of the machine because of the framework that runs there."""
    if program.framework == MINDFORMERS:
        return machine._replace(present=machine.present | WITH_MINDFORMERS)
    if program.framework not in ADAPTORS:
        return machine
    versions = {**machine.versions, "transformer-engine": VERSION}
    capability = machine.capability or CAPABILITY
    return machine._replace(versions=versions, capability=capability, present=machine.present | PRESENT)


def _destinations(argv: Sequence[str]) -> list[str]:
    """The options of a command in order, as their arguments are called."""
    options = (one.partition("=")[0] for one in argv if one.startswith("--"))
    return [one.lstrip("-").replace("-", "_") for one in options]


def judge(
    program: Program,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    world_size: int | None,
    machine: Machine = Machine(),
    budget: Budget = Budget(),
    config: Mapping[str, Any] | None = None,
) -> Verdict:
    """What a program's own parser and checks say of the arguments that follow its name. config: what is in the file
    that they name, for a program that reads one."""
    with _ONE_AT_A_TIME:
        verdict: Verdict = in_thread(
            lambda: _session(program, env, world_size, machine, budget).judge(argv, env, world_size, config)
        )
    return verdict


_ONE_AT_A_TIME = threading.Lock()
_SESSIONS: dict[object, Session] = {}
KEPT = 2
"""Programs that stay read within one process."""


def _session(
    program: Program, env: Mapping[str, str], world_size: int | None, machine: Machine, budget: Budget
) -> Session:
    """The program as it was read before, if none of its files has changed and it sees the same environment."""
    devices = None if program.framework in READS_CONFIGURATIONS else world_size  # no module of those asks for it
    key = repr((program, sorted(env.items()), devices, machine, budget))
    kept = _SESSIONS.pop(key, None)
    if kept is None or not kept.sources.unchanged():
        kept = Session(program, machine, budget)
    _SESSIONS[key] = kept
    while len(_SESSIONS) > KEPT:
        del _SESSIONS[next(iter(_SESSIONS))]
    return kept


def in_thread(run: Any) -> Any:
    """Run with room for deep calls."""
    found: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            found.append(run())
        except BaseException as error:
            errors.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(STACK)
    sys.setrecursionlimit(max(limit, FRAMES))
    try:
        thread = threading.Thread(target=work, name="preflight program")
        thread.start()
    except RuntimeError:  # no room for such a stack: the usual one has to do
        sys.setrecursionlimit(limit)
        return run()
    finally:
        threading.stack_size(size)
    try:
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return found[0]
