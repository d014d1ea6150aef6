"""Pods of training jobs: their number, devices and containers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.loaders.document import Node
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span

_DEVICES = lazy_pattern(r"(nvidia|amd)\.com/gpu|huawei\.com/([Aa]scend.*|npu)")
_PRODUCT = (
    "node.kubernetes.io/npu.chip.name",
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "accelerator-type",
    "accelerator",
)
"""Node labels that name the accelerator, as set by the plugins of NVIDIA, AMD and Ascend and by GKE; the most specific
first."""
KINDS = ("PyTorchJob", "AscendJob", "MPIJob", "HyperJob", "TrainJob", "RayJob", "JobSet", "Job", "Pod")
_REPLICAS = {
    "PyTorchJob": ("spec", "pytorchReplicaSpecs"),
    "AscendJob": ("spec", "replicaSpecs"),
    "MPIJob": ("spec", "mpiReplicaSpecs"),
}


class Number(NamedTuple):
    """A count that is written, or 1 by default; span: its place."""

    value: int
    span: Span


class Pod(NamedTuple):
    """Equal pods. None: a count that is not written as a number. device: the node selector, if it names the
    accelerator."""

    replicas: Number | None
    devices: Number | None
    containers: tuple[Node, ...]
    device: Node | None = None


class Job(NamedTuple):
    """The pods of a manifest. entrypoint: a command that one of them runs, if their containers do not name it."""

    kind: str
    pods: tuple[Pod, ...]
    entrypoint: Node | None = None


def pods(tree: Node) -> Job | None:
    """The pods of a training job; None for any other manifest."""
    kind, api = (node.value if (node := tree.get(name)) is not None else "" for name in ("kind", "apiVersion"))
    if not isinstance(kind, str) or not isinstance(api, str):
        return None
    if kind in _REPLICAS:
        elastic = tree.get("spec", "elasticPolicy") is not None
        specs = tree.get(*_REPLICAS[kind])
        return (
            Job(kind, tuple(_pod(entry.value, elastic) for entry in specs.entries if not entry.shadowed))
            if specs
            else None
        )
    if kind == "Job" and api.startswith("batch.volcano.sh/"):
        tasks = tree.get("spec", "tasks")
        return Job("Volcano Job", tuple(_pod(task) for task in tasks.items)) if tasks else None
    if kind == "HyperJob" and api.startswith("training.volcano.sh/"):
        return Job(kind, tuple(_hyperjob(tree)))
    if kind == "TrainJob" and api.startswith("trainer.kubeflow.org/"):
        return Job(kind, tuple(_trainjob(tree)))
    if kind == "RayJob" and api.startswith("ray.io/"):
        return Job(kind, tuple(_rayjob(tree)), tree.get("spec", "entrypoint"))
    if kind == "JobSet":
        return Job(kind, tuple(_jobset(tree)))
    if kind == "Job" and api.startswith("batch/"):
        return Job(kind, tuple(_batch(tree)))
    if kind == "Pod" and api == "v1":
        return Job(kind, (Pod(Number(1, tree.span), *_spec(tree, "spec")),))
    return None


def _pod(spec: Node, elastic: bool = False) -> Pod:
    return Pod(None if elastic else _count(spec.get("replicas"), spec), *_template(spec, "template"))


def _batch(tree: Node) -> Iterator[Pod]:
    """Pods of a plain Job train together if an index distinguishes them."""
    spec = tree.get("spec")
    if spec is None:
        return
    mode, number = spec.get("completionMode"), _count(spec.get("parallelism"), spec)
    together = number is not None and (number.value == 1 or (mode is not None and mode.value == "Indexed"))
    yield Pod(number if together else None, *_template(spec, "template"))


def _jobset(tree: Node) -> Iterator[Pod]:
    listed = tree.get("spec", "replicatedJobs")
    for job in listed.items if listed else ():
        replicas, parallel = (
            _count(job.get(*path), job) for path in (("replicas",), ("template", "spec", "parallelism"))
        )
        both = replicas._replace(value=replicas.value * parallel.value) if replicas and parallel else None
        yield Pod(both, *_template(job, "template", "spec", "template"))


def _hyperjob(tree: Node) -> Iterator[Pod]:
    """Volcano 1.16, apis/training/v1alpha1/hyperjob.go:37.
    Whether several Volcano Jobs train as one is unknown."""
    listed = tree.get("spec", "replicatedJobs")
    jobs = listed.items if listed else ()
    alone = len(jobs) == 1 and all(
        (number := _count(job.get("replicas"), job)) and number.value == 1 and job.get("splitPolicy") is None
        for job in jobs
    )
    for job in jobs:
        tasks = job.get("templateSpec", "tasks")
        for task in tasks.items if tasks else ():
            yield _pod(task, elastic=not alone)


def _trainjob(tree: Node) -> Iterator[Pod]:
    """Kubeflow Trainer 2, apis/trainer/v1alpha1/trainjob_types.go:249. Missing values come from the runtime, a separate
    object."""
    trainer = tree.get("spec", "trainer")
    if trainer is None:
        return
    processes, nodes = trainer.get("numProcPerNode"), trainer.get("numNodes")
    if processes is None or processes.value in ("auto", "gpu"):  # terms of releases before 2.2
        found = [_count(node, node) for node in _devices(trainer.get("resourcesPerNode"))]
        each = found[0] if len(found) == 1 else None
    else:
        each = _count(processes, processes)
    yield Pod(_count(nodes, nodes) if nodes is not None else None, each, (trainer,))


def _rayjob(tree: Node) -> Iterator[Pod]:
    """KubeRay 1.7, apis/ray/v1/raycluster_types.go:375, :436.
    The submitter and the nodes of the cluster run Ray itself."""
    cluster = tree.get("spec", "rayClusterSpec")
    if cluster is None:
        return
    scaled = cluster.get("enableInTreeAutoscaling")
    elastic = scaled is not None and scaled.value is not False
    groups = cluster.get("workerGroupSpecs")
    if (head := cluster.get("headGroupSpec")) is not None:
        devices, _, device = _template(head, "template")
        yield Pod(Number(1, head.span), devices, (), device)
    for group in groups.items if groups else ():
        replicas, hosts = group.get("replicas"), _count(group.get("numOfHosts"), group)
        number = _count(replicas, group) if replicas is not None and not elastic else None
        both = number._replace(value=number.value * hosts.value) if number and hosts else None
        devices, _, device = _template(group, "template")
        yield Pod(both, devices, (), device)


def _template(parent: Node, *path: str) -> tuple[Number | None, tuple[Node, ...], Node | None]:
    """Devices and containers of a pod's template, and the device type."""
    return _spec(parent, *path, "spec")


def _spec(parent: Node, *path: str) -> tuple[Number | None, tuple[Node, ...], Node | None]:
    return (*_containers(parent, *path, "containers"), _device(parent.get(*path)))


def _device(spec: Node | None) -> Node | None:
    """The most specific label about the accelerator of a pod's nodes."""
    if spec is None:
        return None
    selector = spec.get("nodeSelector")
    found = {entry.key.value: entry.value for entry in selector.entries} if selector is not None else {}
    terms = spec.get("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    if terms is not None and len(terms.items) == 1 and (asked := terms.items[0].get("matchExpressions")) is not None:
        for part in asked.items:
            key, operator, values = (part.get(name) for name in ("key", "operator", "values"))
            if key and operator and values and operator.value == "In" and len(values.items) == 1:
                found[key.value] = values.items[0]
    return next((found[name] for name in _PRODUCT if name in found), None)


def _containers(parent: Node, *path: str) -> tuple[Number | None, tuple[Node, ...]]:
    listed = parent.get(*path)
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
    """Device counts of a container; limits take precedence over requests, which must equal them."""
    yield from _devices(container.get("resources"))


def _devices(resources: Node | None) -> Iterator[Node]:
    if resources is None:
        return
    for part in ("limits", "requests"):
        listed = resources.get(part)
        found = (
            [e.value for e in listed.entries if isinstance(e.key.value, str) and _DEVICES.fullmatch(e.key.value)]
            if listed
            else []
        )
        if found:
            yield from found
            return


def _count(node: Node | None, parent: Node) -> Number | None:
    """A number, 1 if none is written, None if it is not a number."""
    if node is None:
        return Number(1, parent.span)
    text = str(node.value)
    return Number(int(text), node.span) if re.fullmatch(r"\d{1,7}", text) else None
