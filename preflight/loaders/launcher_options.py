"""Options of launchers: the options of a command, and which of them take values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from preflight.loaders.document import Problem, Word
from preflight.source.finding import Message
from preflight.source.record import NamedTuple
from preflight.source.spelling import nearest


class Spec(NamedTuple):
    """How a command reads its options. flags: take no value; pairs: take two; letters: short options with a value, and
    their long names."""

    flags: frozenset[str]
    letters: Mapping[str, str] = {}
    values: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    prefixes: bool = False
    clusters: bool = False


class Options(NamedTuple):
    """Options as given, by long name with dashes; the value of a flag is None. words: all of them; rest: the first
    other word and everything after it."""

    given: dict[str, Word | None]
    words: tuple[Word, ...]
    rest: tuple[Word, ...]
    elastic: bool = False

    def word(self, *names: str) -> Word | None:
        """The value of the first of these options that is given."""
        return next((word for name in names if (word := self.given.get(name)) is not None), None)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TORCHRUN = Spec(
    _names("standalone m module no-python run-path use-env use_env virtual-local-rank h help"),
    {"r": "redirects", "t": "tee"},
    _names(
        "nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts monitor-interval start-method "
        "role log-dir redirects tee local-ranks-filter node-rank master-addr master-port local-addr logs-specs "
        "numa-binding signals-to-handle event-log-handler"
    ),
    prefixes=True,
)
MSRUN = Spec(
    frozenset(),
    {},
    _names(
        "worker-num local-worker-num master-addr master-port node-rank log-dir join cluster-time-out bind-core "
        "sim-level sim-rank-id rank-table-file worker-log-name tail-worker-log"
    ),
)
DEEPSPEED = Spec(
    _names(
        "module no-python no-local-rank enable-each-rank-log-off force-multi save-pid use-env elastic-training "
        "bind-cores-to-rank no-ssh no-ssh-check"
    ),
    {"i": "include", "e": "exclude", "H": "hostfile"},
    _names(
        "hostfile include exclude num-nodes num-gpus master-addr master-port node-rank launcher launcher-args "
        "ssh-port autotuning bind-core-list"
    ),
)
ACCELERATE = Spec(
    _names(
        "cpu multi-gpu tpu ipex use-xpu use-deepspeed use-fsdp use-megatron-lm use-tpu same-network quiet q debug m "
        "module no-python multi-cpu enable-cpu-affinity"
    ),
    {},
    _names(
        "config-file num-processes num-machines machine-rank main-process-ip main-process-port mixed-precision "
        "num-cpu-threads-per-process dynamo-backend"
    ),
)
PYTHON = Spec(_names("u b bb B d E I i O OO P q s S v V x"), {"W": "W", "X": "X"}, _names("W X"))
MPIRUN = Spec(
    _names(
        "allow-run-as-root oversubscribe tag-output report-bindings verbose v q quiet display-map "
        "nooversubscribe bynode byslot do-not-launch"
    ),
    {},
    _names(
        "np n c N npernode host H hostfile machinefile f x bind-to map-by rank-by wdir wd output-filename ppn genvlist"
    ),
    _names("mca genv env"),
)
SLURM = Spec(
    _names(
        "label verbose exclusive unbuffered overcommit quiet no-kill kill-on-bad-exit pty contiguous overlap "
        "oversubscribe multi-prog hold use-min-nodes preserve-env immediate requeue no-requeue wait-all-nodes parsable "
        "test-only spread-job container-mount-home no-container-mount-home container-writable container-readonly "
        "container-remap-root no-container-remap-root container-entrypoint no-container-entrypoint no-allocate reboot"
    ),
    {
        "N": "nodes",
        "n": "ntasks",
        "G": "gpus",
        "c": "cpus-per-task",
        "J": "job-name",
        "o": "output",
        "e": "error",
        "p": "partition",
        "t": "time",
        "A": "account",
        "w": "nodelist",
        "x": "exclude",
        "q": "qos",
        "D": "chdir",
        "C": "constraint",
        "i": "input",
        "M": "clusters",
        "m": "distribution",
        "d": "dependency",
        "L": "licenses",
        "B": "extra-node-info",
        "T": "threads",
        "W": "wait",
        "a": "array",
        "r": "relative",
        "b": "begin",
        "k": "no-kill",
    },
    values=frozenset(["wrap"]),
    clusters=True,
)


SUBCOMMANDS = {
    "megatron": ("pt", "sft", "rlhf", "export"),
    "llamafactory-cli": ("train",),
    "lmf": ("train",),
}
"""Installed programs that train without a script, with their subcommands."""


def read_options(words: Sequence[Word], spec: Spec) -> Options:
    """Consume the options at the beginning of a command's words."""
    given: dict[str, Word | None] = {}
    elastic, at = False, 0
    while at < len(words):
        flag, value = words[at].parts
        text = flag.text
        if text is None:
            if _is_command(words[at]) or not _script_follows(words[at + 1 :]):
                break
            elastic, at = True, at + 1
            continue
        if text == "--":
            at += 1
            break
        if not text.startswith("-") or text == "-":
            break
        name, at = _name(text, spec), at + 1
        if value is None and name in spec.letters and len(text) > 2 and spec.clusters and not text.startswith("--"):
            given[spec.letters[name]] = _tail(flag, 2)
            continue
        name = spec.letters.get(name, name) if not text.startswith("--") else name
        count = (
            0
            if value is not None or name in spec.flags
            else 2
            if name in spec.pairs
            else _arity(name, words[at:], spec)
        )
        given[name] = value if value is not None else words[at] if count and at < len(words) else None
        at += count
    at = min(at, len(words))
    return Options(given, tuple(words[:at]), tuple(words[at:]), elastic)


def _name(text: str, spec: Spec) -> str:
    name = text.lstrip("-")
    if spec.clusters and not text.startswith("--"):
        return name[:1]
    name = name.replace("_", "-") if text.startswith("--") or len(name) > 2 else name
    if spec.prefixes and name not in spec.values | spec.flags:
        whole = [known for known in spec.values | spec.flags if known.startswith(name) and len(known) > 2]
        return whole[0] if len(whole) == 1 and len(name) > 1 else name
    return name


NEAR = 0.8
"""The similarity from which a word counts as a misspelt option: newer releases have options with other names."""


def misspelt(words: Sequence[Word], spec: Spec, launcher: str) -> Iterator[Problem]:
    """Options that a launcher lacks and that nearly match one that it has; it accepts prefixes of names."""
    known = spec.values | spec.flags
    for flag, whole in ((word.parts[0], word.text or "") for word in words):
        name = (flag.text or "").replace("_", "-")[2:] if (flag.text or "").startswith("--") else ""
        if len(name) < 3 or any(one.replace("_", "-").startswith(name) for one in known):
            continue
        if (meant := nearest(name, sorted(known), NEAR)) is not None:
            right = "--" + (meant.replace("-", "_") if "_" in (flag.text or "") or spec is MSRUN else meant)
            fix = (f"write {right}", flag.span, right) if flag.editable else None
            template = "{launcher} has no option {option}; did you mean {right}?"
            message = Message(template, launcher=launcher, option=flag.text, right=right)
            yield Problem("launcher-option", message, flag.span, flag.uses, fix, (whole,))


def _tail(word: Word, start: int) -> Word:
    text = word.text or ""
    span = word.span._replace(start=word.span.start + start) if word.editable else word.span
    return word._replace(text=text[start:], span=span, pieces=())


def _arity(name: str, after: Sequence[Word], spec: Spec) -> int:
    """0 or 1 values; an unknown option takes one if the next word looks like a value."""
    if name in spec.values or name in spec.letters.values():
        return 1
    if not after or (spec.clusters and len(name) == 1):
        return 0
    if after[0].text is None:
        return 1
    return int(
        not after[0].text.startswith("-")
        and not is_entry(after[0])
        and after[0].text.rpartition("/")[2] not in COMMANDS
    )


COMMANDS = _names(
    "python python3 torchrun msrun deepspeed accelerate bash sh srun mpirun mpiexec env numactl nohup nsys"
)


def is_entry(word: Word) -> bool:
    """Whether a word looks like a script: its last part ends in .py or .sh."""
    last = word.pieces[-1].text if word.pieces else word.text
    return last is not None and last.endswith((".py", ".sh"))


def _is_command(word: Word) -> bool:
    """Whether a word is a command in an unknown folder."""
    last = word.pieces[-1].text if word.pieces else None
    return last is not None and "/" in last and last.rpartition("/")[2].rstrip(".0123456789") in COMMANDS


def _script_follows(words: Sequence[Word]) -> bool:
    return any(is_entry(word) for word in words[:40])
