"""Pods of the job kinds that train: how many, with how many devices, with which containers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.document import Node
from preflight.record import NamedTuple
from preflight.source import Span

_DEVICES = re.compile(r"(nvidia|amd)\.com/gpu|huawei\.com/([Aa]scend.*|npu)")
_REPLICAS = {
    "PyTorchJob": ("spec", "pytorchReplicaSpecs"),
    "AscendJob": ("spec", "replicaSpecs"),
    "MPIJob": ("spec", "mpiReplicaSpecs"),
}


class Number(NamedTuple):
    """A count that is written, or that is 1 because none is; span: where."""

    value: int
    span: Span


class Pod(NamedTuple):
    """Equal pods. None: a count that is not written as a number."""

    replicas: Number | None
    devices: Number | None
    containers: tuple[Node, ...]


class Job(NamedTuple):
    """The pods of a manifest."""

    kind: str
    pods: tuple[Pod, ...]


def pods(tree: Node) -> Job | None:
    """The pods of a job that trains; None for any other manifest."""
    kind, api = (node.value if (node := tree.get(name)) is not None else "" for name in ("kind", "apiVersion"))
    if not isinstance(kind, str) or not isinstance(api, str):
        return None
    if kind in _REPLICAS:
        elastic = tree.get("spec", "elasticPolicy") is not None
        specs = tree.get(*_REPLICAS[kind])
        return Job(kind, tuple(_pod(entry.value, elastic) for entry in specs.entries if not entry.shadowed)) if specs else None
    if kind == "Job" and api.startswith("batch.volcano.sh/"):
        tasks = tree.get("spec", "tasks")
        return Job("Volcano Job", tuple(_pod(task) for task in tasks.items)) if tasks else None
    if kind == "JobSet":
        return Job(kind, tuple(_jobset(tree)))
    return None


def _pod(spec: Node, elastic: bool = False) -> Pod:
    return Pod(None if elastic else _count(spec.get("replicas"), spec), *_template(spec, "template"))


def _jobset(tree: Node) -> Iterator[Pod]:
    listed = tree.get("spec", "replicatedJobs")
    for job in listed.items if listed else ():
        replicas, parallel = (_count(job.get(*path), job) for path in (("replicas",), ("template", "spec", "parallelism")))
        both = replicas._replace(value=replicas.value * parallel.value) if replicas and parallel else None
        yield Pod(both, *_template(job, "template", "spec", "template"))


def _template(parent: Node, *path: str) -> tuple[Number | None, tuple[Node, ...]]:
    """Devices and containers of a pod's template."""
    listed = parent.get(*path, "spec", "containers")
    containers = listed.items if listed else ()
    total, span = 0, parent.span
    for container in containers:
        for node in _resources(container):
            count = _count(node, node)
            if count is None:
                return None, containers
            total, span = total + count.value, node.span
    return Number(total, span), containers


def _resources(container: Node) -> Iterator[Node]:
    """Device counts of a container; limits outweigh requests, which must equal them."""
    for part in ("limits", "requests"):
        listed = container.get("resources", part)
        found = [e.value for e in listed.entries if isinstance(e.key.value, str) and _DEVICES.fullmatch(e.key.value)] if listed else []
        if found:
            yield from found
            return


def _count(node: Node | None, parent: Node) -> Number | None:
    """A number, 1 where none is written, None where it is no number."""
    if node is None:
        return Number(1, parent.span)
    text = str(node.value)
    return Number(int(text), node.span) if re.fullmatch(r"\d{1,7}", text) else None
