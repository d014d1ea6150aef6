"""The entry point: the verdict of a program about one command, from its interpretation."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence

from preflight.program.argument_parsers import ParserError
from preflight.program.interpreted_state_cache import KeptState
from preflight.program.interpreter import Interpreter
from preflight.program.interpreter_state import Journal
from preflight.program.machine_facts import FILES, Facts
from preflight.program.megatron import Megatron
from preflight.program.mindformers import FILE, MindFormers
from preflight.program.mindformers import PRESENT as WITH_MINDFORMERS
from preflight.program.mindformers_start_without_script import OF_PYNATIVE
from preflight.program.mindspeed import ADAPTORS, CAPABILITY, PRESENT, VERSION, MindSpeed
from preflight.program.sources import Sources
from preflight.program.values import OPAQUE_VALUES, Exhausted, Raised, Unknown, Value
from preflight.program.verdict import Budget, Machine, Place, Program, Refusal, Remark, Rewrite, Verdict
from preflight.source import cache_folder
from preflight.source.typing_without_import import Any

PARSER = "argparse"
MESSAGE = 2000


def conclude(
    run: Interpreter,
    stages: Sequence[str],
    raised: Raised | None,
    initial: Mapping[str, Value],
    given: Sequence[str],
) -> Verdict:
    """The verdict of one run. raised: the exception that ended it; initial: the parsed arguments."""
    refusals = [
        refusal(one.raised, one.cause, run.stage_of.get(id(one), one.stage), given)
        for one in run.notes
        if one.raised.sure
    ]
    why = "; ".join(f"{what} ({place})" if place.file else what for what, place in list(run.gaps.items())[:5])
    if raised is not None and raised.sure:
        refusals.append(refusal(raised, Unknown(), run.stage, given)._replace(certain=True))
        outcome = "refuses"
    elif raised is not None:
        why = why or f"{type(raised.error).__name__}: {raised} ({raised.place})"
        outcome = "unread"
    else:
        left_open = [one for one in refusals if set(one.unless) != {FILES}]
        outcome = "may refuse" if left_open else "unread" if run.gaps else "accepts"
    values = {
        name: value
        for name, value in (run.arguments or {}).items()
        if not isinstance(value, OPAQUE_VALUES) and not _partly_unknown(value)
    }
    return Verdict(
        outcome,  # type: ignore[arg-type]
        tuple(_distinct(refusals)),
        tuple(_rewrites(run, initial)),
        tuple(Remark(text, place) for text, place in dict.fromkeys(run.remarks)),
        values,
        tuple(sorted(run.sources.asked)),
        why if outcome in ("unread", "may refuse") else "",
        tuple(stages),
        frozenset(run.entered),
    )


def refusal(raised: Raised, cause: Unknown, stage: str, given: Sequence[str]) -> Refusal:
    """The description of one refusal."""
    error = raised.error
    name = PARSER if isinstance(error, ParserError) else type(error).__name__
    explicit = {option: at for at, option in enumerate(given)}
    reads = sorted(raised.reads, key=lambda one: -explicit.get(one, -1))
    unless = tuple(sorted(cause.facts or cause.gaps))
    return Refusal(raised.place, name, str(error)[:MESSAGE], tuple(reads), False, unless, "", stage)


def _distinct(refusals: list[Refusal]) -> list[Refusal]:
    found: dict[tuple[Place, bool], Refusal] = {}
    for one in refusals:
        found.setdefault((one.place, one.certain), one)
    return list(found.values())


def _partly_unknown(value: Value) -> bool:
    if isinstance(value, (list, tuple)):
        return any(isinstance(one, OPAQUE_VALUES) for one in value)
    return isinstance(value, dict) and any(isinstance(one, OPAQUE_VALUES) for one in value.values())


def _rewrites(run: Interpreter, initial: Mapping[str, Value]) -> list[Rewrite]:
    found = []
    for name, place in run.writes.items():
        if name not in initial or run.arguments is None or name not in run.arguments:
            continue
        before, after = initial[name], run.arguments[name]
        if isinstance(after, OPAQUE_VALUES) or (type(before) is type(after) and before == after):
            continue
        found.append(Rewrite(name, before, after, place))
    return found


MINDFORMERS = "mindformers"
READS_CONFIGURATIONS = frozenset((MINDFORMERS,))
"""Frameworks whose scripts read a file of settings."""
OF_ANOTHER_START = OF_PYNATIVE
"""Sections of such a file with which the run is started in another way."""
NAMED = ("--config", FILE)
"""How the script of MindFormers gets its configuration."""
STACK = 128 << 20
FRAMES = 20_000


class Session:
    """A program loaded for one machine, which judges many commands.

    strict: raise errors of the interpreter itself instead of reporting the program as unreadable.
    """

    strict = False
    _used = False

    def __init__(self, program: Program, machine: Machine, budget: Budget) -> None:
        self.sources = Sources(program.roots, budget, program.entry)
        self.program, self.machine, self.budget = program, _machine(program, machine), budget
        self._read()

    def _read(self) -> None:
        """Load the program from the start."""
        program = self.program
        self.run = Interpreter(self.sources, Facts(self.machine, {}, None), self.budget)
        self.driver: Megatron | MindFormers
        if program.framework in ADAPTORS:
            self.driver = MindSpeed(self.run, program.framework, program.entry)
        elif program.framework == MINDFORMERS:
            self.driver = MindFormers(self.run, program.entry)
        else:
            self.driver = Megatron(self.run, program.entry)
        self._changed: Journal = {}
        self._kept: KeptState | None = None
        if type(self.driver) is Megatron:
            about = f"{self.sources.roots} {program.entry} {_said(self.machine)} {self.budget}"
            self._kept = KeptState(self.run, self.driver, about, _code())

    def holds(self, argv: Sequence[str], env: Mapping[str, str | None], world_size: int | None) -> bool:
        """Whether the loaded files are unchanged, and the modules would read the same facts of this command."""
        run = self.run
        before = run.environment(run.facts.environ, run.facts.world_size, run.argv[1:])
        environ = Facts(self.machine, env, world_size).environ
        return before == run.environment(environ, world_size, list(argv)) and self.sources.unchanged()

    def judge(
        self,
        argv: Sequence[str],
        env: Mapping[str, str | None],
        world_size: int | None,
        config: Mapping[str, Any] | None = None,
        checkpoint: bool = False,
    ) -> Verdict:
        """The verdict of the program about one command with a file of this configuration. checkpoint: values that a
        checkpoint may set are unknown."""
        if self._used and isinstance(self.driver, MindSpeed):
            self._read()  # the effect of patches depends on the command
        if not self._used and self._kept is not None:
            self._kept.restore(Facts(self.machine, env, world_size).environ, world_size, argv)
        self._used = True
        if isinstance(self.driver, MindFormers):
            self.driver.document, argv = config, [*NAMED, *argv]
        else:
            self.driver.checkpoint = checkpoint
        self._begin(argv, env, world_size)
        concluded = False
        try:
            raised = self._driven()
            concluded = True
            return conclude(self.run, self.driver.stages, raised, self.driver.initial, _destinations(argv))
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
            if concluded and self._kept is not None and self._kept.lacks_some():
                self._restore()
                self._kept.keep(self.run.facts.environ, world_size, argv)

    def _driven(self) -> Raised | None:
        try:
            self.driver()
        except Raised as raised:
            return raised
        return None

    def _unread(self, why: str) -> Verdict:
        return Verdict("unread", why=why, stages=tuple(self.driver.stages), files=tuple(sorted(self.sources.asked)))

    def _begin(self, argv: Sequence[str], env: Mapping[str, str | None], world_size: int | None) -> None:
        self._restore()
        run = self.run
        run.facts = Facts(self.machine, env, world_size)
        run.environ.clear()
        run.environ.update(run.facts.environ)
        run.argv[:] = [self.program.entry or "main.py", *argv]
        run.begin()
        run.notes.clear()
        run.gaps.clear()
        run.remarks.clear()
        run.writes.clear()
        run.origins.clear()
        run.reads.clear()
        run.guards.clear()
        run.causes.clear()
        run.entered.clear()
        run.walked.clear()
        run.blurred.clear()
        run.blurred.update(run.lasting)
        run.arguments, run.known_arguments = None, frozenset()
        run.steps = run.depth = run.trying = 0
        run.started = time.thread_time()
        run.scope = None
        self.driver.stages.clear()
        self.driver.initial.clear()
        run.journals[:] = [{}]

    def _end(self) -> None:
        """Register the command's changes to be undone when the program is used again."""
        self._changed = self.run.journals[0]
        self.run.journals.clear()

    def _restore(self) -> None:
        changed, self._changed = self._changed, {}
        self.run.revert(changed)


def _said(machine: Machine) -> str:
    """All statements about a machine, in a fixed order."""
    stated = sorted(machine.versions.items()), sorted(machine.present), sorted(machine.absent)
    return f"{stated} {machine.capability} {machine.devices} {sorted(machine.folders.items())}"


def _code() -> str:
    """A stamp that changes with the code of the interpreter."""
    return cache_folder.stamp((os.path.dirname(os.path.abspath(__file__)),))


def _machine(program: Program, machine: Machine) -> Machine:
    """The machine with facts implied by the framework that runs there."""
    if program.framework == MINDFORMERS:
        return machine._replace(present=machine.present | WITH_MINDFORMERS)
    if program.framework not in ADAPTORS:
        return machine
    versions = {**machine.versions, "transformer-engine": VERSION}
    capability = machine.capability or CAPABILITY
    return machine._replace(versions=versions, capability=capability, present=machine.present | PRESENT)


def _destinations(argv: Sequence[str]) -> list[str]:
    """The argument names of a command's options, in order."""
    options = (one.partition("=")[0] for one in argv if one.startswith("--"))
    return [one.lstrip("-").replace("-", "_") for one in options]


def judge(
    program: Program,
    argv: Sequence[str],
    *,
    env: Mapping[str, str | None],
    world_size: int | None,
    machine: Machine = Machine(),
    budget: Budget = Budget(),
    config: Mapping[str, Any] | None = None,
    checkpoint: bool = False,
) -> Verdict:
    """The verdict of a program's own parser and checks on the arguments that follow its name. config: the contents of
    the file that they name, for a program that reads one; checkpoint: values that a checkpoint may set are unknown."""
    with _ONE_AT_A_TIME:
        verdict: Verdict = in_thread(
            lambda: _session(program, argv, env, world_size, machine, budget).judge(
                argv, env, world_size, config, checkpoint
            )
        )
    return verdict


_ONE_AT_A_TIME = threading.Lock()
_SESSIONS: dict[object, Session] = {}
KEPT = 2
"""Programs that stay read within one process."""


def _session(
    program: Program,
    argv: Sequence[str],
    env: Mapping[str, str | None],
    world_size: int | None,
    machine: Machine,
    budget: Budget,
) -> Session:
    """The already loaded program, if none of its files has changed and its environment is the same."""
    key = f"{program} {_said(machine)} {budget}"
    kept = _SESSIONS.pop(key, None)
    if kept is None or not kept.holds(argv, env, world_size):
        kept = Session(program, machine, budget)
    _SESSIONS[key] = kept
    while len(_SESSIONS) > KEPT:
        del _SESSIONS[next(iter(_SESSIONS))]
    return kept


def in_thread(run: Any) -> Any:
    """Run in a thread with a large stack."""
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
