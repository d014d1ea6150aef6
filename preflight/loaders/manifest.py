"""Kubernetes manifests of training jobs: the commands of their containers as documents, with the devices that the job asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from preflight.document import Count, Document, Launch, Node, Unknown, Word
from preflight.loaders.launchers import command_name, take_apart
from preflight.loaders.pods import Job, Number, Pod, pods
from preflight.loaders.shell import load_script
from preflight.loaders.yaml import load_yaml
from preflight.record import NamedTuple
from preflight.source import Source

_SHELLS = ("bash", "sh", "ash", "dash", "zsh")
_SEPARATOR = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_REFERENCE = re.compile(r"\$\((\w+)\)")
_STATED = {"torch": ("nnodes", "nproc"), "msrun": ("worker",), "mpi": ("n",)}


class _Asked(NamedTuple):
    """The devices of a job in all, its nodes, the devices of each."""

    world: Count
    nodes: int | None
    per_node: int | None


class Manifest(NamedTuple):
    """One job of a file. kind: "PyTorchJob"; documents: the launches in its containers; None where a count cannot be known."""

    kind: str
    name: str
    documents: tuple[Document, ...]
    nodes: int | None = None
    devices_per_node: int | None = None
    world: int | None = None


def load_manifests(source: Source) -> Iterator[Manifest]:
    """The training jobs of a file of one or more YAML documents. Raises InputError where one is not YAML."""
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(source.text))]
    for start, end in zip(starts, [*starts[1:], len(source.text)], strict=True):
        start += 3 if source.text.startswith("---", start) else 0
        tree = load_yaml(_only(source, start, end)).tree
        if tree is not None and (job := pods(tree)) is not None:
            yield _manifest(job, tree)


def _manifest(job: Job, tree: Node) -> Manifest:
    name = tree.get("metadata", "name")
    with_devices = [pod for pod in job.pods if pod.devices is None or pod.devices.value]
    nodes = _sum([pod.replicas for pod in with_devices])
    each = {pod.devices.value if pod.devices else None for pod in with_devices}
    per_node = each.pop() if len(each) == 1 else None
    totals = [pod.replicas.value * pod.devices.value if pod.replicas and pod.devices else None for pod in with_devices]
    world = sum(total or 0 for total in totals) if totals and None not in totals else None
    span = next((pod.replicas.span for pod in with_devices if pod.replicas), tree.span)
    asked = _Asked(Count(Unknown("the manifest's devices") if world is None else world, span, job.kind), nodes, per_node)
    documents = [document for pod in job.pods for document in _documents(pod, asked)]
    if job.entrypoint is not None:
        documents += [replace(found, launch=_alone(found.launch)) for found in load_script(_script(job.entrypoint)) if found.launch is not None]
    return Manifest(job.kind, str(name.value) if name else "", tuple(documents), nodes, per_node, world)


def _sum(counts: list[Number | None]) -> int | None:
    known = [count.value for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _documents(pod: Pod, asked: _Asked) -> Iterator[Document]:
    for container in pod.containers:
        environment = {name: _word(value, {}) for name, value in _environment(container)}
        words = [_word(node, environment) for part in ("command", "args") if (listed := container.get(part)) for node in listed.items]
        nodes = [node for part in ("command", "args") if (listed := container.get(part)) for node in listed.items]
        for document in _launches(words, nodes, environment):
            if document.launch is not None:
                yield replace(document, launch=_counted(document.launch, asked))


def _launches(words: list[Word], nodes: list[Node], environment: dict[str, Word]) -> tuple[Document, ...]:
    """What a container runs: the launches of an inline script, or the one command."""
    if not words:
        return ()
    at = next((i for i, word in enumerate(words[1:3], 1) if re.fullmatch(r"-[a-z]*c", word.text or "")), 0)
    if command_name(words[0]) in _SHELLS and at and len(nodes) > at + 1:
        return load_script(_script(nodes[at + 1]), {name: word.text for name, word in environment.items() if word.text is not None})
    taken = take_apart(words, environment)
    return (Document(words[0].span.source, "command", launch=taken.launch, problems=taken.problems),) if taken is not None else ()


def _environment(container: Node) -> Iterator[tuple[str, Node]]:
    """Names and values that are written in the manifest; those from elsewhere stay unknown."""
    listed = container.get("env")
    for item in listed.items if listed else ():
        name, value = item.get("name"), item.get("value")
        if name is not None and value is not None and isinstance(name.value, str):
            yield name.value, value


def _word(node: Node, environment: dict[str, Word]) -> Word:
    """A scalar as a word; $(NAME) is what the manifest says of it, else unknown."""
    text = str(node.value) if not isinstance(node.value, bool) else node.span.text
    for name in _REFERENCE.findall(text):
        value = environment.get(name)
        if value is None or value.text is None:
            return Word(None, node.span, because=f"$({name})", editable=False)
        text = text.replace(f"$({name})", value.text)
    return Word(text, node.span, editable=node.span.text == text)


def _script(node: Node) -> Source:
    """An inline script. Of a literal block the places in the manifest stay true; any other text stands for itself."""
    source, text = node.span.source, node.span.text
    if node.style == "|" and "<<" not in text:
        return _only(source, node.span.start + text.index("\n") + 1 if "\n" in text else node.span.end, node.span.end)
    if text == node.value:
        return _only(source, node.span.start, node.span.end)
    return Source(str(node.value), source.name)


def _only(source: Source, start: int, end: int) -> Source:
    """The source with everything outside a stretch blanked, so that offsets and lines stay what they are."""
    blank = re.compile(r"[^\n]")
    return Source(blank.sub(" ", source.text[:start]) + source.text[start:end] + blank.sub(" ", source.text[end:]), source.name, path=source.path)


def _counted(launch: Launch, asked: _Asked) -> Launch:
    """The job's devices beside what the launcher itself states; what a launcher takes from defaults, the operator sets."""
    names, typed = _stated(launch)
    if names and typed == names and not _open(launch):
        return launch._replace(world=(*launch.world, asked.world))
    world = asked.world
    if launch.launcher and not _open(launch) and len(typed) == 1 < len(names):
        half, other = (launch.per_node, asked.nodes) if "nproc" in typed else (launch.nodes, asked.per_node)
        if half is not None and isinstance(half.value, int):
            total = Unknown("the manifest's devices") if other is None else half.value * other
            world = half._replace(value=total)
    return launch._replace(world=(world,), nodes=None, per_node=None)


def _alone(launch: Launch) -> Launch:
    """What a command states that runs by itself on one of the nodes; where it states nothing, whoever wrote it places the processes."""
    if _stated(launch)[1] and not _open(launch):
        return launch
    return launch._replace(world=(Count(Unknown("Ray's workers"), launch.entry.span, "RayJob"),), nodes=None, per_node=None)


def _stated(launch: Launch) -> tuple[set[str], set[str]]:
    """The options that state the processes of a launcher, and those of them that are typed."""
    names = next((names for start, names in _STATED.items() if start in launch.launcher), ())
    words = [word.text.lstrip("-").replace("_", "-") for word in launch.launcher_words if word.text and word.text.startswith("-") and not word.uses]
    return set(names), {name for name in names if any(text.startswith(name) for text in words)}


def _open(launch: Launch) -> bool:
    return any(word.text is None or word.uses for word in launch.launcher_words)
