"""The commands before a launcher, and requests beyond an allocation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from preflight.loaders.document import Count, Launch, Problem, Unknown, Word
from preflight.loaders.entry_scripts import PYTHON_NAME, command_name, entry_of
from preflight.loaders.launcher_options import COMMANDS, MPIRUN, SLURM, is_entry, read_options
from preflight.loaders.process_counts import Allocation, allocation, count, over
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple

RULE = "launcher-beyond-allocation"
VISIBLE = ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_LISTED = lazy_pattern(r"\s*(?:\d{1,3}|GPU-[\w-]+|MIG-[\w/-]+)\s*(?:,\s*(?:\d{1,3}|GPU-[\w-]+|MIG-[\w/-]+)\s*)*")
_CHOOSES = frozenset(["-w", "--nodelist", "-r", "--relative", "-x", "--exclude"])
"""srun options that select nodes: scripts with them start a task for each node themselves."""


class Started(NamedTuple):
    """The processes that a launcher starts: number of nodes, processes per node, and total. words: its options, and
    those of the launchers before it; fronts: the names of these."""

    launcher: str
    words: Sequence[Word]
    fronts: Sequence[str]
    nodes: Count | None
    each: Count | None
    world: Count | None


def beyond(started: Started, asked: Allocation, environment: Mapping[str, Word]) -> Iterator[Problem]:
    """The first resource that a launcher needs and the job lacks: nodes, tasks, devices per node, devices."""
    together = not _one_by_one(started.words)
    found = (
        *(_waits(started, asked) if together else ()),
        *_crowds(started, asked.per_node),
        *(problem for name in VISIBLE for problem in _crowds(started, _visible(name, environment))),
        *(_outnumbers(started, asked.devices) if together else ()),
    )
    yield from found[:1]


def _one_by_one(words: Sequence[Word]) -> bool:
    """Whether the script selects the node of a task, or its caller starts it once per node."""
    rank = _node_rank(words)
    by_caller = rank is not None and rank.text is None and "SLURM_" not in rank.because
    return by_caller or any((word.text or "").partition("=")[0] in _CHOOSES for word in words)


def waits_for_pods(launcher: str, nodes: Count | None, pods: Count) -> Iterator[Problem]:
    """A launcher that waits for more nodes than the job's pods in a cluster."""
    if _exceeds(nodes, pods):
        assert nodes is not None
        yield _waiting(launcher, nodes, pods)


def crowds_pod(launcher: str, each: Count | None, devices: Count) -> Iterator[Problem]:
    """A launcher that starts more processes in a pod than the pod has devices."""
    yield from _crowds(Started(launcher, (), (), None, each, None), devices)


def _waits(started: Started, asked: Allocation) -> Iterator[Problem]:
    """A rendezvous for more nodes than exist, or than nodes on which the launcher is started."""
    nodes, here = started.nodes, _own_address(started.words)
    several = Count(1, asked.nodes.span, asked.nodes.source) if asked.nodes is not None else None
    if here is not None and "srun" in started.fronts and _exceeds(nodes, several) and _exceeds(asked.nodes, several):
        template = "{launcher} waits for {nodes} nodes at {host}, which is a different machine on each of them"
        assert nodes is not None
        yield Problem(RULE, Message(template, launcher=started.launcher, nodes=nodes.value, host=here.text), here.span)
    elif _exceeds(nodes, asked.nodes):
        assert nodes is not None and asked.nodes is not None
        yield _waiting(started.launcher, nodes, asked.nodes)
    elif "srun" in started.fronts and _node_rank(started.words) is None and _exceeds(nodes, asked.tasks):
        assert nodes is not None and asked.tasks is not None
        message = Message.plural(
            asked.tasks.value,
            "srun starts {launcher} {tasks} time, and it waits for {nodes} nodes",
            "srun starts {launcher} {tasks} times, and it waits for {nodes} nodes",
            launcher=started.launcher,
            tasks=asked.tasks.value,
            nodes=nodes.value,
        )
        yield _problem(message, nodes, asked.tasks)


def _waiting(launcher: str, nodes: Count, there: Count) -> Problem:
    message = Message.plural(
        there.value,
        "{launcher} waits for {nodes} nodes, but {source} requests {there} node",
        "{launcher} waits for {nodes} nodes, but {source} requests {there} nodes",
        launcher=launcher,
        nodes=nodes.value,
        source=there.source,
        there=there.value,
    )
    return _problem(message, nodes, there)


def _crowds(started: Started, devices: Count | None) -> Iterator[Problem]:
    """More processes on a node than devices on it."""
    if _exceeds(started.each, devices):
        assert started.each is not None and devices is not None
        message = Message.plural(
            devices.value,
            "{launcher} starts {processes} processes on a node, and {source} has {devices} device there",
            "{launcher} starts {processes} processes on a node, and {source} has {devices} devices there",
            launcher=started.launcher,
            processes=started.each.value,
            source=devices.source,
            devices=devices.value,
        )
        yield _problem(message, started.each, devices)


def _outnumbers(started: Started, devices: Count | None) -> Iterator[Problem]:
    """More processes in total than devices in total."""
    if _exceeds(started.world, devices):
        assert started.world is not None and devices is not None
        message = Message.plural(
            devices.value,
            "{launcher} starts {processes} processes, but {source} requests {devices} device",
            "{launcher} starts {processes} processes, but {source} requests {devices} devices",
            launcher=started.launcher,
            processes=started.world.value,
            source=devices.source,
            devices=devices.value,
        )
        yield _problem(message, started.world, devices)


def _exceeds(needed: Count | None, there: Count | None) -> bool:
    """Whether a number certainly exceeds another: both are explicit, not defaults that the environment may replace."""
    return (
        needed is not None
        and there is not None
        and isinstance(needed.value, int)
        and isinstance(there.value, int)
        and needed.value > there.value
        and not needed.assumed
        and not there.assumed
        and there.span is not None
    )


def _problem(message: Message, needed: Count, there: Count) -> Problem:
    assert there.span is not None
    span = needed.span or there.span
    return Problem(RULE, message, span, () if span == there.span else (there.span,))


def _visible(name: str, environment: Mapping[str, Word]) -> Count | None:
    """The number of devices that a variable leaves visible, if it lists them."""
    word = environment.get(name)
    if word is None or word.text is None or word.maybe or not _LISTED.fullmatch(word.text):
        return None
    return Count(len({part.strip() for part in word.text.split(",")}), word.span, name)


def _node_rank(words: Sequence[Word]) -> Word | None:
    """The node rank passed to the launcher."""
    return _value(words, "node-rank")


def _own_address(words: Sequence[Word]) -> Word | None:
    """The address of the rendezvous host, if each machine uses that name for itself."""
    word = _value(words, "rdzv-endpoint", "master-addr")
    return word if word is not None and (word.text or "").partition(":")[0] in ("localhost", "127.0.0.1") else None


def _value(words: Sequence[Word], *names: str) -> Word | None:
    """The value of the first given option among several, for a launcher."""
    for at, word in enumerate(words):
        flag, value = word.parts
        if (flag.text or "").lstrip("-").replace("_", "-") in names:
            return value or (words[at + 1] if at + 1 < len(words) else None)
    return None


ASSIGNMENT = lazy_pattern(r"[A-Za-z_]\w*=")
_QUOTED = lazy_pattern(r"'[^'\s\"]*'")
_RANKED = lazy_pattern(r"\b(SLURM_(PROCID|LOCALID)|OMPI_COMM_WORLD|PMI_|PMIX_|MPI_LOCALRANKID|PALS_)")
"""Variables that a launcher sets for each of its processes."""


def _handed_on(word: Word) -> Word:
    """A word as `ray job submit` passes it to a second shell: newer releases quote it, older ones do not (ray:
    python/ray/dashboard/modules/job/cli.py, shlex.join or list2cmdline)."""
    if not word.text or not _QUOTED.fullmatch(word.text):
        return word
    return word._replace(text=None, because="releases of Ray read quotes in different ways", editable=False)


class FrontReader:
    """The words before the launcher, as far as they have been read."""

    def __init__(self, environment: dict[str, Word], asked: Allocation, open: bool) -> None:
        self.environment, self.asked, self.open = environment, asked, open
        self.fronts: list[str] = []
        self.before: tuple[Word, ...] = ()
        self.hidden = ""
        self.problems: tuple[Problem, ...] = ()

    def assign(self, word: Word) -> None:
        """A variable of the command's own environment."""
        name, _, value = (word.text or "").partition("=")
        typed = word.span._replace(start=word.span.end - len(value)) if word.editable else word.span
        self.environment[name] = Word(value, typed, word.uses, editable=word.editable)

    def behind(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """The words after `--`, otherwise after the options of the command that starts it."""
        ends = next((at for at, word in enumerate(words) if word.text == "--"), None)
        found = words[ends + 1 :] if ends is not None else self.skip(words[1:])
        submitted = [word.text for word in words[:3]] == ["ray", "job", "submit"]
        return tuple(map(_handed_on, found)) if submitted else found

    def skip(self, words: tuple[Word, ...], named: bool = True) -> tuple[Word, ...]:
        """The command that a wrapper runs: from the first assignment, command or script on. named: its name is known;
        values set by its options (`docker exec -e A=1`) apply, and are not a command.
        """
        for at, word in enumerate(words):
            assigns = word.text is not None and ASSIGNMENT.match(word.text) is not None
            if named and assigns and at and (words[at - 1].text or "").startswith("-"):
                if (word.text or "").partition("=")[0].isupper():
                    self.assign(word)
            elif (
                assigns or command_name(word) in COMMANDS or PYTHON_NAME.fullmatch(command_name(word)) or is_entry(word)
            ):
                return words[at:]
        return ()

    def run_by(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """The command of a program that takes a script or, after -m, a module."""
        at = next((at for at, word in enumerate(words) if word.text == "-m"), None)
        return words[at + 1 :] if at is not None else self.skip(words)

    def front(self, name: str, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """The command of a task launcher; its resource request is kept."""
        options = read_options(words[1:], SLURM if name == "srun" else MPIRUN)
        if name == "srun":
            self.asked = over(allocation(options, "srun"), self.asked)
        else:
            number = options.word("np", "n", "c", "ppn")
            tasks = (
                count(number, name)
                if number is not None
                else Count(Unknown(f"{name} without -np"), words[0].span, name)
            )
            self.asked = self.asked._replace(tasks=tasks, nodes=None, tasks_per_node=None)
        self.fronts.append(name)
        self.before += (words[0], *options.words)
        return options.rest

    def allocated(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """The command of `salloc`, which runs once, in the requested allocation."""
        options = read_options(words[1:], SLURM)
        self.asked = over(allocation(options, "salloc"), self.asked)
        self.before += (words[0], *options.words)
        return options.rest

    def made(
        self,
        launcher: str,
        options: tuple[Word, ...],
        rest: tuple[Word, ...],
        world: tuple[Count, ...],
        *more: Count | None,
    ) -> Launch | None:
        """The launch of an entry script, None if there is none."""
        if not rest:
            return None
        nodes, per_node = (*more, None, None)[:2]
        each = per_node or (self.asked.tasks_per_node if self.fronts[-1:] == ["srun"] else None)
        named = launcher or (self.fronts[-1] if self.fronts else "")
        if launcher != "bash":  # the launches of a script show the programs that it starts
            started = Started(named, self.before + options, self.fronts, nodes, each, world[0] if world else None)
            self.problems += tuple(beyond(started, self.asked, self.environment))
        world += tuple(c for c in (self.asked.devices,) if c is not None)
        entry = entry_of(rest[0])
        return Launch(
            named, self.before + options, entry, rest[1:],
            self.environment, world, self.open,
            nodes or self.asked.nodes, per_node or self.asked.per_node, self.asked.device,
        )  # fmt: skip

    def tasks(self) -> tuple[Count, ...]:
        """One rank per task of the launcher in front; unknown if it does not state the number."""
        front = self.fronts[-1]
        return (self.asked.tasks or Count(Unknown(f"{front} does not give the number of tasks"), None, front),)

    def alone(self, options: tuple[Word, ...], rest: tuple[Word, ...]) -> Launch | None:
        """The launch of python without a launcher."""
        world = self.tasks() if self.fronts else (self.single(options[0], rest),)
        return self.made("" if self.fronts else "python", options, rest, world)

    def single(self, python: Word, rest: tuple[Word, ...]) -> Count:
        """The world size of a plain python: the value of WORLD_SIZE, unknown if other ranks may be started next to it,
        otherwise one."""
        if self.hidden:
            return Count(Unknown(f"{self.hidden} may start several"), python.span, "python")
        if (size := self.environment.get("WORLD_SIZE")) is not None:
            return count(size, "WORLD_SIZE")
        if (size := self.environment.get("RANK_SIZE")) is not None and "MS_SIMULATION_LEVEL" in self.environment:
            return count(size, "RANK_SIZE of a simulated run")
        ranked = (w for w in (*self.environment.values(), *rest) if _RANKED.search(w.because))
        if (rank := self.environment.get("RANK") or next(ranked, None)) is not None:
            return Count(Unknown(f"{rank.because or 'RANK'} identifies a rank"), python.span, "python")
        return Count(1, python.span, "python")
