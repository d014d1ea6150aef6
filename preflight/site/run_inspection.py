"""Inspects the paths that a run refers to, once for all readings of the run."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

from preflight.dialects import folders
from preflight.job import Checkpoint, Job, NamedPath, NodeGroup, Opened, Package, SaveFolder, Site
from preflight.run.request import SiteRequest
from preflight.site.isolated_file_reading import Answer, Task, Unread, look_apart
from preflight.site.megatron_files import Data, megatron_tasks
from preflight.site.mindformers_files import mindformers_tasks
from preflight.site.packages_and_nodes import asked_of_slurm, read_inventory, read_packages

MEGATRON = ("megatron", "mindspeed", "mindspeed-llm")
"""Frameworks with the same argument names for data and checkpoints as Megatron."""
MINDFORMERS = ("mindformers", "pynative")


def looking(request: SiteRequest) -> Callable[[Job], Site]:
    """A function that inspects the paths of runs. A run is read several times, but inspected once."""

    def look(job: Job) -> Site:
        tasks = _tasks(job, request)
        key = tuple((task.func, *task.keywords.items()) for task in tasks)
        kept = request.kept if request.kept is not None else {}
        if key not in kept:
            kept[key] = _looked(tasks, request)
        found = kept[key]
        assert isinstance(found, Site)
        return found

    return look


def _tasks(job: Job, request: SiteRequest) -> list[Task]:
    """The inspection tasks."""
    around = _around(job)
    tasks: list[Task] = []
    if job.target.framework in MEGATRON:
        tasks = megatron_tasks(job, around)
    elif job.target.framework in MINDFORMERS:
        tasks = mindformers_tasks(job, around)
    tasks += [partial(read_packages, python=request.python)] if request.python else []
    tasks += [partial(read_inventory, path=request.inventory)] if request.inventory else []
    return tasks


def _around(job: Job) -> tuple[str, ...]:
    """The folders from which relative names may start; none if the script changes to one that is unknown."""
    found = tuple(str(Path(folder).absolute()) for folder in folders(job.documents[0]))
    launch = job.documents[0].launch
    if launch is None or launch.directory is None:
        return found
    there = launch.directory.text
    if not there or there.startswith("~") or "$" in there:
        return ()
    return (there,) if os.path.isabs(there) else tuple(os.path.join(folder, there) for folder in found)


def _looked(tasks: list[Task], request: SiteRequest) -> Site:
    answers = look_apart(tasks, request.seconds)
    values = [answer.value for answer in answers]
    data = [value for value in values if isinstance(value, Data)]
    checkpoint = next((value for value in values if isinstance(value, Checkpoint)), None)
    packages, nodes, opened = _machine(answers, request)
    return Site(
        host=socket.gethostname(),
        opened=(*_opened(answers), *opened),
        data=tuple(file for one in data for file in one.files),
        draws=tuple(draw for one in data for draw in one.draws),
        checkpoint=checkpoint,
        saved=dict(checkpoint.arguments) if checkpoint is not None else {},
        paths=tuple(value for value in values if isinstance(value, NamedPath)),
        save=next((value for value in values if isinstance(value, SaveFolder)), None),
        packages=packages,
        nodes=nodes,
    )


def _machine(
    answers: list[Answer], request: SiteRequest
) -> tuple[tuple[Package, ...], tuple[NodeGroup, ...], tuple[Opened, ...]]:
    """The packages and nodes, and the sources that were queried."""
    lists = [answer.value for answer in answers if isinstance(answer.value, tuple) and type(answer.value) is tuple]
    packages = tuple(one for found in lists for one in found if isinstance(one, Package))
    nodes = tuple(one for found in lists for one in found if isinstance(one, NodeGroup))
    if not request.scheduler:
        return packages, nodes, ()
    try:
        return packages, asked_of_slurm(request.seconds), (Opened("sinfo --json", "read"),)
    except Unread as error:
        return packages, nodes, (Opened("sinfo --json", "not read", str(error)),)


def _opened(answers: list[Answer]) -> tuple[Opened, ...]:
    """The inspected paths, without repetition; and why a reader found nothing."""
    found = {(one.path, one.how): one for answer in answers for one in answer.opened}
    return tuple(found.values())
