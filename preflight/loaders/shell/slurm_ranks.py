"""Ranks of processes that srun starts: variables of Slurm that are taken for others."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.loaders.document import Count, Problem
from preflight.loaders.shell.bash_parser import Tree
from preflight.loaders.shell.command_effects import Commands
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Span

_GIVEN = lazy_pattern(r"(?<![\w])(WORLD_SIZE|LOCAL_RANK|RANK)=[\\\"']{0,3}\$\{?(SLURM_\w{1,40})\}?(?=[\s\"';\\]|\Z)")
_OWN_TASKS = lazy_pattern(r"srun[^\n|;]{0,400}(?:[ \t]-n|--ntasks|[ \t]-N|--nodes)")
"""A step with its own number of tasks."""
_NODES = frozenset("SLURM_NNODES SLURM_JOB_NUM_NODES".split())
_LAUNCHERS = lazy_pattern(r"torchrun|torch\.distributed|accelerate|deepspeed|msrun")
_WORLD = "{name} is the number of nodes, {value}, but {tasks} processes are started"
_LOCAL = "LOCAL_RANK is the rank in the whole job: on the second node it is above the number of devices"
_IDLE = "one task per node starts one process, so that only one of {devices} devices of each node is used"
_RANK = "RANK is {name}, which several processes have in common"


def rank_faults(tree: Tree, commands: Commands) -> Iterator[Problem]:
    """Ranks and sizes of the job that are set to another number of Slurm, where srun starts every process itself."""
    text = tree.source.text
    if "SLURM_" not in text or "srun" not in text or _LAUNCHERS.search(text) or _OWN_TASKS.search(text):
        return
    if commands.files.opened or commands.state.foreign:
        return  # another script may start the processes
    asked = commands.asked
    nodes, tasks, each = _number(asked.nodes), _number(asked.tasks), _number(asked.tasks_per_node)
    if tasks is None and nodes is not None and each is not None:
        tasks = nodes * each
    devices, one = _number(asked.per_node), asked.tasks_per_node
    if each == 1 and devices is not None and devices > 1 and one is not None and one.span and "PROCID" in text:
        message = Message(_IDLE, devices=devices)
        yield Problem("devices-without-process", message, one.span)
    if nodes is None or tasks is None or tasks <= nodes:
        return
    for match in _GIVEN.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if line.lstrip().startswith("#"):
            continue
        name, source = match[1], match[2]
        if name == "WORLD_SIZE" and source in _NODES:
            message = Message(_WORLD, name=name, value=nodes, tasks=tasks)
        elif name == "LOCAL_RANK" and source == "SLURM_PROCID" and nodes > 1:
            message = Message(_LOCAL)
        elif name == "RANK" and (source == "SLURM_NODEID" or (source == "SLURM_LOCALID" and nodes > 1)):
            message = Message(_RANK, name=source)
        else:
            continue
        yield Problem("rank-of-another-kind", message, Span(tree.source, match.start(2), match.end(2)))


def _number(count: Count | None) -> int | None:
    return count.value if count is not None and isinstance(count.value, int) and not count.assumed else None
