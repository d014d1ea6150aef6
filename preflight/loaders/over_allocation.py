"""Launchers that start more than their job's allocation has: nodes, tasks, devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from preflight.loaders.document import Count, Problem, Word
from preflight.loaders.process_counts import Allocation
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
            "srun starts {launcher} {tasks} time, but the launcher waits for {nodes} nodes",
            "srun starts {launcher} {tasks} times, but the launcher waits for {nodes} nodes",
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
            "{launcher} starts {processes} processes per node, but {source} has only {devices} device per node",
            "{launcher} starts {processes} processes per node, but {source} has only {devices} devices per node",
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
