"""Splits a command into the commands in front, the launcher and its options, the entry script, and the words after
it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from preflight.loaders import process_counts
from preflight.loaders.command_wrappers import APART, ASSIGNMENT, FrontReader
from preflight.loaders.document import Count, Launch, Piece, Problem, Unknown, Word, word_of
from preflight.loaders.entry_scripts import PYTHON_NAME, command_name, first_value, script_of
from preflight.loaders.launcher_options import (
    ACCELERATE,
    COMMANDS,
    DEEPSPEED,
    MSRUN,
    PYTHON,
    SUBCOMMANDS,
    TORCHRUN,
    Options,
    is_entry,
    misspelt,
    read_options,
)
from preflight.loaders.process_counts import Allocation, count, crowded, product, quotient
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.spelling import nearest

_NAME = "msrun_launcher.sh"
_TOKEN = lazy_pattern(r"""\\\n|\\(.)|'([^']*)'|(")|([^\s\\'"]+)|([\s]+)|(.)""", re.DOTALL)


class CommandError(Exception):
    """The command line inside a word cannot be read."""


class Arguments(NamedTuple):
    """The arguments of msrun_launcher.sh. command: the first argument, None if the script would not run it."""

    command: Word | None
    world: Count
    local: Count
    problems: tuple[Problem, ...]


def arguments(words: Sequence[Word]) -> Arguments:
    """Read the words after the launcher's name: 1, 2, 6 or 9 arguments."""
    given = words[1:]
    command = given[0] if given else None
    world = _number(given[1]) if len(given) > 1 else Count(8, None, f"{_NAME}'s default")
    local = _number(given[2]) if len(given) == 9 else world
    problems = []
    if any(w.text is None and not w.because for w in given):
        pass
    elif len(given) not in (1, 2, 6, 9):
        template = "{launcher} takes 1, 2, 6 or 9 arguments, not {count}; it prints its usage and exits"
        message = Message(template, launcher=_NAME, count=len(given))
        problems.append(Problem("msrun-launcher-arguments", message, words[0].span))
    elif len(given) > 1 and world.value == 1:
        world = world._replace(value=Unknown("nothing is started"))
        template = "{launcher} with 1 worker prints a hint and exits 0 without running anything"
        problems.append(Problem("msrun-launcher-single-worker", Message(template, launcher=_NAME), given[1].span))
    elif len(given) > 1 and given[1].text is not None and not given[1].text.isdigit():
        template = "{launcher} needs the number of workers as its second argument, not {text!r}"
        message = Message(template, launcher=_NAME, text=given[1].text)
        problems.append(Problem("msrun-launcher-arguments", message, given[1].span))
    return Arguments(command, world, local, tuple(problems))


def _number(word: Word) -> Count:
    text = word.text
    known = text is not None and re.fullmatch(r"[0-9]{1,9}", text) and int(text) > 0
    return Count(int(text) if known and text else Unknown(word.because or text or ""), word.span, _NAME)


def split_command(word: Word) -> list[Word]:
    """The words of a command line in a single word, each with the place where it was written. Raises CommandError."""
    pieces = word.pieces or (Piece(word.text, word.span, word.uses, word.editable, word.because, word.maybe),)
    words: list[Word] = []
    current: list[Piece] = []
    quoted = started = False
    for piece in pieces:
        if piece.text is None:
            current.append(piece)
            started = True
            continue
        for match in _TOKEN.finditer(piece.text):
            kind = match.lastindex
            if kind == 3:
                quoted, started = not quoted, True
            elif kind == 5 and not quoted:
                if started:
                    words.append(_made(current, piece))
                current, started = [], False
            elif kind == 2 and quoted:
                current.append(piece.cut(match.start(), match.end()))
            elif kind is not None:
                current.append(piece.cut(match.start(kind), match.end(kind)))
                started = True
    if quoted:
        raise CommandError("a quote is not closed")
    if started:
        words.append(_made(current, pieces[-1]))
    return words


def _made(pieces: list[Piece], near: Piece) -> Word:
    return word_of(tuple(pieces)) if pieces else Word("", near.span, near.uses, editable=False)


_WRAPPERS = frozenset(
    "env nohup time exec command builtin coproc sudo su runuser gosu su-exec doas setpriv chroot unshare nsenter "
    "stdbuf unbuffer nice ionice chrt timeout numactl taskset setsid setarch linux32 linux64 prlimit cgexec flock "
    "systemd-run systemd-inhibit dumb-init tini catchsegv busybox xvfb-run tsp faketime choom cpulimit chronic "
    "firejail bwrap proxychains proxychains4 torsocks "
    "strace ltrace valgrind gdb cuda-gdb compute-sanitizer cuda-memcheck nsys ncu nvprof rocprof rocprofv3 "
    "msprof hpcrun viztracer scalene pyinstrument kernprof "
    "docker podman nerdctl kubectl apptainer singularity enroot uv poetry pipenv conda".split()
)
"""Commands that start another one once, on this machine."""
_SUBCOMMANDS = {
    "py-spy": ("record",),
    "perf": ("record", "stat", "trace", "mem", "c2c"),
    **dict.fromkeys("coverage memray pdm pixi hatch rye mamba micromamba".split(), ("run",)),
}
"""Programs that start another one only with a certain option."""
ELSEWHERE = frozenset("ssh pdsh ray tmux screen xargs".split())
"""Commands that start another one, once or several times, here or elsewhere."""
TASKS = frozenset("srun mpirun mpiexec orterun mpiexec.hydra prterun".split())
"""Launchers of tasks, which start one process for each."""
STARTERS = _WRAPPERS | _SUBCOMMANDS.keys() | ELSEWHERE | TASKS | {"salloc"}
"""Commands that start another one."""
SHELLS = frozenset("bash sh dash zsh ksh mksh ash rbash".split())
_TORCH = ("torch.distributed.run", "torch.distributed.launch", "torch.distributed.elastic")
_VARIABLE = lazy_pattern(r"\$\{?\w+\}?")
_SLOTS = lazy_pattern(r"[\w.-]+:\d+(?:,\d+)*(?:@[\w.-]+:\d+(?:,\d+)*)*")
_RUNNERS = frozenset(
    "cProfile profile pdb ipdb trace coverage debugpy viztracer memray scalene pyinstrument kernprof "
    "torch.utils.bottleneck".split()
)
"""Modules that run another script."""


def _module(words: Sequence[Word]) -> int:
    """The position of the module option of `uv run`, 0 without one; only options and their values precede it."""
    if len(words) < 2 or words[1].text != "run":
        return 0
    valued = False
    for at, word in enumerate(words[2:], 2):
        text = word.text or ""
        if text in ("-m", "--module"):
            return at
        if not text.startswith("-") and not valued:
            return 0
        valued = text.startswith("-") and "=" not in text
    return 0


class Taken(NamedTuple):
    """A launch, the problems visible in its command line, and what starts it: launchers in front of it ("srun"), or a
    variable."""

    launch: Launch
    problems: tuple[Problem, ...] = ()
    fronts: tuple[str, ...] = ()


def take_apart(
    words: Sequence[Word],
    environment: Mapping[str, Word] | None = None,
    asked: Allocation = Allocation(),
    open: bool = False,
) -> Taken | None:
    """The launch in a command, or None if it starts no training script. asked: the request in the job's own #SBATCH
    lines."""
    return _Taker(dict(environment or {}), asked, open).take(tuple(words))


class _Taker(FrontReader):
    def take(self, words: tuple[Word, ...]) -> Taken | None:
        while words:
            name = command_name(words[0])
            if name in APART:
                self.apart(name)
            elif name == "env":
                self.without(words[1:])
            if words[0].text and ASSIGNMENT.match(words[0].text):
                self.assign(words[0])
                words = words[1:]
            elif name in ELSEWHERE:
                self.hidden = self.hidden or name
                words = self.behind(words)
            elif not name and _runs_launcher(words):
                break
            elif name == "command" and words[1:] and (words[1].text or "")[:2] in ("-v", "-V"):
                return None  # the command only prints the location of a program
            elif name == "coverage" and _starts(name, words):
                words = self.run_by(words[1:])
            elif name == "uv" and (at := _module(words)):
                words = (Word("python", words[0].span), *words[at:])
            elif name in _WRAPPERS or _starts(name, words):
                words = self.skip(words[1:])
            elif not name and words[0].text is None and self.skip(words[1:], named=False):
                self.hidden = self.hidden or words[0].because
                words = self.skip(words[1:], named=False)
            elif name in TASKS:
                words = self.front(name, words)
            elif name == "salloc":
                words = self.allocated(words)
            else:
                break
        launch = self._launch(command_name(words[0]), words) if words else None
        return (
            Taken(launch, self.problems, (*self.fronts, *filter(None, [self.hidden]))) if launch is not None else None
        )

    def _launch(self, name: str, words: tuple[Word, ...]) -> Launch | None:
        readers: dict[str, Callable[[tuple[Word, ...]], Launch | None]] = {
            "torchrun": lambda w: self._torchrun("torchrun", w, read_options(w[1:], TORCHRUN)),
            "torchrun_main": lambda w: self._torchrun("torchrun", w, read_options(w[1:], TORCHRUN)),
            "msrun": self._msrun,
            "deepspeed": self._deepspeed,
            "accelerate": self._accelerate,
            "accelerate-launch": self._accelerate,
            "ds": self._deepspeed,
            **dict.fromkeys((*SHELLS, "source", "."), self._bash),
            **dict.fromkeys(SUBCOMMANDS, self._command),
        }
        if name in readers:
            return readers[name](words)
        if name == "msrun_launcher.sh":
            return self._msrun_launcher(words)
        unknown = words[0].text is None and not is_entry(words[0])
        starts = unknown and len(words) > 1 and is_entry(first_value(words[1:]))
        if PYTHON_NAME.fullmatch(name) or _runs_launcher(words) or starts:
            return self._python(words)
        if is_entry(words[0]) and name.endswith(".py"):
            return self.made("", (), words, self.tasks() if self.fronts else ())
        return self._bash((words[0], *words)) if name.endswith(".sh") and is_entry(words[0]) else None

    def _torchrun(self, name: str, words: tuple[Word, ...], options: Options) -> Launch | None:
        rest, at = options.rest, words[0].span
        wrong = tuple(misspelt(options.words, TORCHRUN, name))
        self.problems += (*wrong, *process_counts.of_torchrun(options))

        def said(flag: str) -> Count:
            if (word := options.word(flag)) is not None:
                return count(word, name)
            return (
                Count(Unknown("the launcher's options are unknown"), at, name, True)
                if options.elastic or wrong
                else Count(1, None, f"{name}'s default")
            )

        nodes = Count(1, None, name) if "standalone" in options.given else said("nnodes")
        each = said("nproc-per-node")
        if "srun" in self.fronts:
            asked = self.asked.nodes
            same = asked is not None and asked.value == nodes.value  # so the value is meant as a number
            self.problems += crowded(self.asked.tasks, asked if asked is not None and same else nodes, at)
        return self.made(name, (words[0], *options.words), rest, (product(name, nodes, each, at=at),), nodes, each)

    def _msrun(self, words: tuple[Word, ...]) -> Launch | None:
        options = read_options(words[1:], MSRUN)
        self.problems += (*misspelt(options.words, MSRUN, "msrun"), *process_counts.of_msrun(options))

        def said(flag: str) -> Count:
            return (
                count(word, "msrun") if (word := options.word(flag)) is not None else Count(8, None, "msrun's default")
            )

        total, local = said("worker-num"), said("local-worker-num")
        total = total._replace(span=total.span or words[0].span)
        return self.made(
            "msrun",
            (words[0], *options.words),
            script_of(options.rest),
            (total,),
            quotient("msrun", total, local),
            local,
        )

    def _deepspeed(self, words: tuple[Word, ...]) -> Launch | None:
        options = read_options(words[1:], DEEPSPEED)
        if (slots := _slots(options)) is not None:
            return self.made("deepspeed", (words[0], *options.words), options.rest, (slots,))
        nodes, each = options.word("num-nodes"), options.word("num-gpus")
        loose = options.word("hostfile", "include", "exclude") is not None or each is None
        hosts = count(nodes, "deepspeed") if nodes is not None else Count(1, None, "deepspeed's default")
        cards = count(each, "deepspeed") if each is not None else None
        world = (
            Count(Unknown("deepspeed's host list"), words[0].span, "deepspeed")
            if loose or cards is None
            else product("deepspeed", hosts, cards)
        )
        return self.made(
            "deepspeed", (words[0], *options.words), options.rest, (world,), None if loose else hosts, cards
        )

    def _accelerate(self, words: tuple[Word, ...]) -> Launch | None:
        if command_name(words[0]) == "accelerate":
            if len(words) < 2 or words[1].text != "launch":
                return None
            words = words[1:]
        options = read_options(words[1:], ACCELERATE)
        total, machines = options.word("num-processes"), options.word("num-machines")
        world = (
            count(total, "accelerate")
            if total is not None
            else Count(Unknown("accelerate's configuration"), words[0].span, "accelerate")
        )
        nodes = count(machines, "accelerate") if machines is not None else None
        each = quotient("accelerate", world, nodes) if nodes is not None else None
        return self.made("accelerate", (words[0], *options.words), options.rest, (world,), nodes, each)

    def _python(self, words: tuple[Word, ...]) -> Launch | None:
        skipped = False
        for at, word in enumerate(words[1:], 1):
            text = word.text
            if skipped or text in ("-X", "-W"):
                skipped = not skipped
                continue
            if text == "-m" and at + 1 < len(words):
                module, inner = words[at + 1].text or "", words[at + 1 :]
                if module in _TORCH:
                    name = f"python -m {module}"
                    options = read_options(inner[1:], TORCHRUN)
                    launch = self._torchrun(name, inner, options)
                    return launch and launch._replace(
                        launcher_words=self.before + words[: at + 1] + launch.launcher_words[len(self.before) :]
                    )
                if (near := nearest(module, _TORCH, 0.9)) is not None:
                    message = Message("torch has no module {module}; did you mean {near}?", module=module, near=near)
                    self.problems += (Problem("launcher-option", message, inner[0].span),)
                    return self._torchrun(f"python -m {near}", inner, read_options(inner[1:], TORCHRUN))
                if module in ("deepspeed.launcher.runner", "accelerate.commands.launch"):
                    return (self._deepspeed if module.startswith("deepspeed") else self._accelerate)(
                        (Word("run", inner[0].span), *inner[1:])
                    )
                if module in _RUNNERS:
                    script = self.run_by(inner[1:])
                    return self.alone(words[: len(words) - len(script)], script) if script else None
                return self.alone(words[: at + 1], inner)
            if text in ("-c", "-"):
                return None
            if text is None or not text.startswith("-"):
                return self.alone(words[:at], words[at:])
        return None

    def _command(self, words: tuple[Word, ...]) -> Launch | None:
        """An installed program that starts its own processes, with their number from the environment."""
        if len(words) < 2 or words[1].text not in SUBCOMMANDS[command_name(words[0])]:
            return None
        name, (each, nodes) = command_name(words[0]), map(self.environment.get, ("NPROC_PER_NODE", "NNODES"))
        outside = any(_VARIABLE.fullmatch(word.because) for word in words if word.text is None)
        usual = Count(1, None, f"{name}'s default", assumed="$NNODES" if outside else "")  # as its other variables
        hosts = count(nodes, "NNODES") if nodes is not None else usual
        if each is None:
            return self.made(
                name, words[:1], words[1:], (Count(Unknown("$NPROC_PER_NODE"), words[0].span, name, True),)
            )
        cards = count(each, "NPROC_PER_NODE")
        return self.made(name, words[:1], words[1:], (product(name, hosts, cards),), hosts, cards)

    def _bash(self, words: tuple[Word, ...]) -> Launch | None:
        options = read_options(words[1:], PYTHON)
        if not options.rest or "c" in options.given or "n" in options.given:
            return None
        if command_name(options.rest[0]) == "msrun_launcher.sh":
            return self._msrun_launcher(options.rest)
        return self.made("bash", (words[0], *options.words), options.rest, ())

    def _msrun_launcher(self, words: tuple[Word, ...]) -> Launch | None:
        made = arguments(words)
        self.problems += made.problems
        if made.command is None:
            return None
        try:
            inner = split_command(made.command)
        except CommandError:
            return None
        return self.made(
            "msrun_launcher.sh",
            words,
            script_of(tuple(inner)),
            (made.world,),
            quotient("msrun_launcher.sh", made.world, made.local),
            made.local,
        )


def _slots(options: Options) -> Count | None:
    """The processes that `deepspeed --include host:0,1@other:0,1` names one by one; None if it names none in this way.

    DeepSpeed: deepspeed/launcher/runner.py, parse_resource_filter
    """
    word = options.word("include")
    if word is None or word.text is None or not _SLOTS.fullmatch(word.text):
        return None
    hosts = (part.partition(":")[2].split(",") for part in word.text.split("@"))
    return Count(sum(len(set(slots)) for slots in hosts), word.span, "deepspeed")


def _starts(name: str, words: Sequence[Word]) -> bool:
    """Whether a multi-purpose program is used to start another one."""
    return name in _SUBCOMMANDS and any(word.text in _SUBCOMMANDS[name] for word in words[1:5])


def _runs_launcher(words: Sequence[Word]) -> bool:
    """Whether an unknown command is a python that runs a launcher as a module."""
    return words[0].text is None and any(a.text == "-m" and b.text in _TORCH for a, b in pairwise(words[1:6]))


_SHELLS = ("bash", "sh")


def behind_script(taken: Taken, words: Sequence[Word]) -> list[Word] | None:
    """The words of a command without the script, if the script receives a command to run; otherwise None."""
    launch = taken.launch
    name = command_name(launch.words[0]) if launch.words else ""
    if not (name.endswith(".py") or name in COMMANDS or PYTHON_NAME.fullmatch(name)) or launch.entry not in words:
        return None
    at = list(words).index(launch.entry)
    before = words[: at - 1] if at and command_name(words[at - 1]) in _SHELLS else words[:at]
    return [*before, *words[at + 1 :]]


def _a_task_a_rank(launch: Launch) -> bool:
    """Whether the exported WORLD_SIZE is the number of tasks, which are several a node."""
    size, nodes = launch.environment.get("WORLD_SIZE"), launch.nodes.value if launch.nodes is not None else None
    tasks = next((one.value for one in launch.world if isinstance(one.value, int)), 0)
    return size is not None and size.text == str(tasks) and isinstance(nodes, int) and tasks > nodes


def started_by(taken: Taken, script: Word) -> Taken:
    """The launch in the arguments of a script: the number of processes is unknown, unless a launcher after the script
    states it, or the job has a task for each rank of the WORLD_SIZE that it exports."""
    launch = taken.launch
    if launch.launcher not in ("", "python", *taken.fronts) or _a_task_a_rank(launch):
        return taken
    name = script.text or script.because
    world = (Count(Unknown(f"{name} may start several"), script.span, name),)
    return taken._replace(launch=launch._replace(world=world, nodes=None, per_node=None))
