"""The commands before a launcher: wrappers, task launchers, assignments."""

from __future__ import annotations

from functools import lru_cache

from preflight.loaders.document import Count, Launch, Problem, Unknown, Word
from preflight.loaders.entry_scripts import PYTHON_NAME, command_name, entry_of
from preflight.loaders.launcher_options import COMMANDS, MPIRUN, SLURM, is_entry, read_options
from preflight.loaders.over_allocation import Started, beyond
from preflight.loaders.process_counts import Allocation, allocation, count, over
from preflight.source.lazy_regex import lazy_pattern

APART = frozenset(
    "ssh pdsh ray docker podman nerdctl kubectl enroot sudo su runuser doas systemd-run bwrap tmux screen".split()
)
"""Commands whose command does not have, or may not have, the environment of the shell."""
ASSIGNMENT = lazy_pattern(r"[A-Za-z_]\w*=")
_QUOTED = lazy_pattern(r"'[^'\s\"]*'")
_RANKED = lazy_pattern(r"\b(SLURM_(PROCID|LOCALID)|OMPI_COMM_WORLD|PMI_|PMIX_|MPI_LOCALRANKID|PALS_)")
"""Variables that a launcher sets for each of its processes."""
_USED = r"(?m)^(?![ \t]*(?:echo|printf)\b)[^#\n]{0,400}"
"""The start of a line that does not only print."""
_OF_A_TASK = lazy_pattern(
    _USED + r"\$\{?(SLURM_(?:PROCID|NODEID|LOCALID)|OMPI_COMM_WORLD_\w{1,20}|PMIX?_RANK|PALS_\w{1,20})\b"
)
_OF_A_GROUP = lazy_pattern(_USED + r"(?:\$\{?|\(\()(WORLD_SIZE|MASTER_ADDR)\b")
_SETS = lazy_pattern(r"\b(WORLD_SIZE|MASTER_ADDR)=")


@lru_cache(maxsize=8)
def _of_several(text: str) -> str:
    """The variable by which a script knows its task or node, or its group of processes, without setting it: whatever
    sets it starts several; "" if there is none."""
    alone = "#SBATCH" in text and "srun" not in text  # Slurm starts such a script once
    if (task := _OF_A_TASK.search(text)) is not None and not (alone and task[1].startswith("SLURM")):
        return task[1]
    set_here = _SETS.findall(text)
    return next((group[1] for group in _OF_A_GROUP.finditer(text) if group[1] not in set_here), "")


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

    def apart(self, name: str) -> None:
        """The command that follows may not have the variables that the shell exports."""
        for variable, word in self.environment.items():
            because = f"{name} may not pass ${variable} on"
            self.environment[variable] = Word(None, word.span, word.uses, because, editable=False)

    def without(self, words: tuple[Word, ...]) -> None:
        """The variables that `env -i` and `env -u NAME` remove."""
        texts = [word.text or "" for word in words]
        for at, text in enumerate(texts):
            if not text.startswith("-"):
                if ASSIGNMENT.match(text) or not texts[at - 1 : at] or texts[at - 1] not in ("-u", "--unset"):
                    return
                self.environment.pop(text, None)
            elif text in ("-i", "-", "--ignore-environment"):
                self.environment.clear()
            elif text.startswith("--unset=") or (text.startswith("-u") and len(text) > 2):
                self.environment.pop(text.removeprefix("--unset=").removeprefix("-u"), None)

    def exported(self, word: Word | None) -> None:
        """The variables that `srun --export` passes on: the named ones, and with ALL those of the shell."""
        if word is None:
            return
        items = (word.text or "").split(",")
        if "ALL" not in items:
            self.apart("srun --export")
        for name, mark, value in (item.partition("=") for item in items):
            if mark:
                self.environment[name] = Word(value, word.span, word.uses, editable=False)

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
            self.exported(options.word("export"))
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
        if task := _of_several(python.span.source.text):
            return Count(Unknown(f"${task} shows that several tasks may run this script"), python.span, "python")
        return Count(1, python.span, "python")
