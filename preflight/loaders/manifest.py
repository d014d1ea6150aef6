"""Kubernetes manifests of training jobs: the commands of their containers, with their devices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from preflight.loaders.document import (
    MARK,
    Comment,
    Count,
    Document,
    Entry,
    Launch,
    Node,
    Piece,
    Problem,
    Unknown,
    Word,
    walk,
    word_of,
)
from preflight.loaders.entry_scripts import command_name
from preflight.loaders.file_kinds import MANIFEST
from preflight.loaders.launchers import take_apart
from preflight.loaders.over_allocation import crowds_pod, waits_for_pods
from preflight.loaders.pods import KINDS, Job, Number, Pod, pods
from preflight.loaders.scripts_in_yaml import TEMPLATE, Inline, inline, outside, without
from preflight.loaders.shell.expansion import MAX_WORK
from preflight.loaders.text_limits import refuse_large
from preflight.loaders.yaml import load_yaml
from preflight.loaders.yaml_comments import yaml_comments
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple, replace
from preflight.source.source_file import InputError, Source, Span


def tree_at(source: Source, start: int, end: int) -> Node | None:
    """The tree of a stretch of a file; None if it is empty. Raises InputError with the place in the file."""
    if not start and end == len(source.text):
        return load_yaml(source).tree
    try:
        tree = load_yaml(Source(source.text[start:end], source.name)).tree
    except InputError as error:
        line, column = source.position(start)
        after = error.line == 1 and column - 1
        raise InputError(
            error.message, error.path, error.line and error.line + line - 1, error.column and error.column + after
        ) from None
    return _moved(tree, source, start, {}) if tree is not None else None


def _moved(node: Node, source: Source, by: int, done: dict[int, Node]) -> Node:
    """A node with all places in the file; anchored content stays shared. The loader limits the depth."""
    there = done.get(id(node))
    if there is None:
        span, value = Span(source, node.span.start + by, node.span.end + by), node.value
        if node.kind == "sequence":
            value = tuple(_moved(item, source, by, done) for item in node.items)
        elif node.kind == "mapping":
            value = tuple(
                Entry(_moved(e.key, source, by, done), _moved(e.value, source, by, done), e.shadowed, e.merged)
                for e in node.entries
            )
        there = done[id(node)] = node._replace(value=value, span=span)
    return there


MOST_COMMANDS = 1_000
"""Maximum number of containers whose command is read."""
MOST_LAUNCHES = 100
MOST_SCRIPT = 64_000
"""Characters of all inline scripts together: the largest published config or script has 17,000."""
NOT_FOLLOWED = "the manifest has more commands than are followed: those from here on are not checked"


class Following:
    """The progress of following commands. work: of the inline scripts together; stopped: the first command that is left
    out."""

    def __init__(self) -> None:
        self.commands = self.launches = self.characters = self.work = 0
        self.stopped: Span | None = None

    def admits(self, nodes: Sequence[Node]) -> bool:
        """Whether a command with these words is followed. The first that is not ends the search."""
        if self.stopped is None:
            self.commands += 1
            full = self.commands > MOST_COMMANDS or self.launches >= MOST_LAUNCHES
            self.stopped = nodes[0].span if full and nodes else None
        return self.stopped is None

    def admits_script(self, node: Node) -> bool:
        """The same for an inline script, which costs more than a command."""
        if self.stopped is None:
            self.characters += len(str(node.value))
            full = self.characters > MOST_SCRIPT or self.work > MAX_WORK or self.launches >= MOST_LAUNCHES
            self.stopped = node.span if full else None
        return self.stopped is None

    def noted(self, document: Document) -> Document:
        """A launch of the manifest, with a note if something was left out."""
        if self.stopped is None:
            return document
        problem = Problem("script-not-followed", NOT_FOLLOWED, self.stopped)
        return replace(document, problems=(*document.problems, problem))


_STATED = {"torch": ("nnodes", "nproc"), "msrun": ("worker",), "mpi": ("n",)}


class Asked(NamedTuple):
    """The total devices of a job, its nodes, the devices of each, and their type."""

    world: Count
    nodes: int | None
    per_node: int | None
    device: Word | None = None


def counted(launch: Launch, asked: Asked) -> Launch:
    """The job's devices in addition to those that the launcher states; the operator sets the launcher's defaults."""
    launch = launch._replace(device=asked.device)
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


def alone(launch: Launch) -> Launch:
    """The values for a command that runs by itself on one of the nodes; if it states nothing, its author places the
    processes."""
    if _stated(launch)[1] and not _open(launch):
        return launch
    return launch._replace(
        world=(Count(Unknown("Ray's workers"), launch.entry.span, "RayJob"),), nodes=None, per_node=None
    )


def _stated(launch: Launch) -> tuple[set[str], set[str]]:
    """The options that state the processes of a launcher, and those that are set."""
    names = next((names for start, names in _STATED.items() if start in launch.launcher), ())
    words = [
        word.text.lstrip("-").replace("_", "-")
        for word in launch.launcher_words
        if word.text and word.text.startswith("-") and not word.uses
    ]
    return set(names), {name for name in names if any(text.startswith(name) for text in words)}


def _open(launch: Launch) -> bool:
    return any(word.text is None or word.uses for word in launch.launcher_words)


_SHELLS = ("bash", "sh", "ash", "dash", "zsh")
_SEPARATOR = lazy_pattern(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_WORD = lazy_pattern(r"(?:^|(?<=^---))[ \t]*[^\s#]", re.MULTILINE)
_OBJECT = lazy_pattern(rf"{MANIFEST}[\"']?\s*:")
_KIND = lazy_pattern(rf"\bkind[\"']?\s*:\s*[\"']?(?:{'|'.join(KINDS)})\b")
_REFERENCE = lazy_pattern(r"\$\((\w+)\)")
_FILLED = lazy_pattern(rf"{TEMPLATE.pattern}|\$\{{?[A-Za-z_]\w*\}}?|<[A-Za-z][^<>\n]*>|%\w+%")
"""Placeholders filled in by Helm, envsubst or a person before Kubernetes sees the word; Kubernetes expands only
$(NAME)."""
_CONTROL = lazy_pattern(r"\{\{-?\s*(?:if|else|range|with|end|define|template|include|block)\b|\{%")
"""A template that selects lines: which lines remain is unknown."""


class Part(NamedTuple):
    """A launch of a manifest; for one in an inline script also that script, and the launch with places in the
    script."""

    document: Document
    script: Inline | None = None
    inner: Document | None = None


class Manifest(NamedTuple):
    """One job in a file. kind: "PyTorchJob"; parts: the launches in its containers; None if a count is unknown."""

    kind: str
    name: str
    parts: tuple[Part, ...]
    nodes: int | None = None
    devices_per_node: int | None = None
    world: int | None = None

    @property
    def documents(self) -> tuple[Document, ...]:
        """The launches in the form in which they are checked."""
        return tuple(part.document for part in self.parts)


def load_manifests(source: Source) -> Iterator[Manifest]:
    """The training jobs of a file of one or more YAML documents. Raises InputError if one is not YAML."""
    refuse_large(source)
    return _manifests([tree for start, end in _stretches(source) if (tree := tree_at(source, start, end)) is not None])


def load_manifest(source: Source) -> tuple[Document, ...]:
    """The launches of a manifest, numbered across its jobs; one document without a launch if it has none. Raises
    InputError."""
    stretches = _stretches(source)
    if all(_OBJECT.search(source.text, start, end) for start, end in stretches):
        trees = [
            tree
            for start, end in stretches
            if _KIND.search(source.text, start, end) and (tree := tree_at(source, start, end)) is not None
        ]
        found = (
            [document for manifest in _manifests(trees) for document in manifest.documents]
            if not _CONTROL.search(source.text)
            else []
        )
        if found:
            said = tuple(_comments(source, trees)) if MARK in source.text else ()
            return tuple(
                replace(one, comments=(*said, *one.comments), run=run, runs=len(found)) for run, one in enumerate(found)
            )
        if len(stretches) > 1 or _SEPARATOR.search(source.text):
            return (Document(source, "manifest"),)
    return (load_yaml(source),)


def part_of(document: Document) -> Part:
    """A launch of a manifest with its sources."""
    return [part for manifest in load_manifests(document.source) for part in manifest.parts][document.run]


def _manifests(trees: Iterable[Node]) -> Iterator[Manifest]:
    following = Following()
    made = [_manifest(job, tree, following) for tree in trees if (job := pods(tree)) is not None]
    return (_noted(manifest, following) for manifest in made)


def _noted(manifest: Manifest, following: Following) -> Manifest:
    """The manifest with the problems that every launch in its file shows."""
    parts = (part._replace(document=following.noted(part.document)) for part in manifest.parts)
    return manifest._replace(parts=tuple(parts))


def _stretches(source: Source) -> list[tuple[int, int]]:
    """The places of the YAML documents of a file, except empty ones."""
    text = source.text
    starts = [0, *(match.end() for match in _SEPARATOR.finditer(text))]
    ends = [*(match.start() for match in _SEPARATOR.finditer(text)), len(text)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if _WORD.search(text, start, end)]


def _comments(source: Source, trees: Iterable[Node]) -> Iterator[Comment]:
    """Comments outside of scripts; a comment above a value covers the whole value."""
    whole = Node("sequence", tuple(trees), source.span(0, len(source.text)))
    ends = {source.position(node.span.start).line: node.span.end for _, node, _ in walk(whole) if node.kind == "scalar"}
    for comment in yaml_comments(source, whole):
        end = ends.get(comment.covers.line, 0) if comment.alone else 0
        yield comment._replace(covers=comment.covers._replace(end=max(comment.covers.end, end + 1)))


def _manifest(job: Job, tree: Node, following: Following) -> Manifest:
    name = tree.get("metadata", "name")
    with_devices = [pod for pod in job.pods if pod.devices is None or pod.devices.value]
    nodes = _sum([pod.replicas for pod in with_devices])
    each = {pod.devices.value if pod.devices else None for pod in with_devices}
    per_node = each.pop() if len(each) == 1 else None
    totals = [pod.replicas.value * pod.devices.value if pod.replicas and pod.devices else None for pod in with_devices]
    world = sum(total or 0 for total in totals) if totals and None not in totals else None
    span = next((pod.replicas.span for pod in with_devices if pod.replicas), tree.span)
    asked = Asked(
        Count(Unknown("the manifest's devices") if world is None else world, span, job.kind),
        nodes,
        per_node,
        _device(with_devices),
    )
    parts = [_launched(part, counted, asked) for pod in job.pods for part in _parts(pod, following)]
    if job.entrypoint is not None:
        parts += [_launched(part, alone) for part in _script(job.entrypoint, {}, following)]
    return Manifest(job.kind, str(name.value) if name else "", tuple(parts), nodes, per_node, world)


def _launched(part: Part, counted: Callable[..., Launch], *asked: Asked) -> Part:
    launch = part.document.launch
    assert launch is not None
    problems = tuple(problem for job in asked for problem in _beyond(launch, job))
    document = replace(part.document, launch=counted(launch, *asked), problems=(*part.document.problems, *problems))
    return part._replace(document=document)


def _beyond(launch: Launch, asked: Asked) -> Iterator[Problem]:
    """Resources that a launcher needs and the pods lack, if its own options state them."""
    if not _stated(launch)[1] or _open(launch):
        return
    span, source = asked.world.span, asked.world.source
    if asked.nodes is not None and launch.nodes is not None and launch.nodes.span is not None:
        yield from waits_for_pods(launch.launcher, launch.nodes, Count(asked.nodes, span, source))
    if asked.per_node is not None and launch.per_node is not None and launch.per_node.span is not None:
        yield from crowds_pod(launch.launcher, launch.per_node, Count(asked.per_node, span, source))


def _device(pods: Sequence[Pod]) -> Word | None:
    """The card type that the pods request from their cluster, if all request the same."""
    words = [_word(pod.device, {}) if pod.device is not None else None for pod in pods]
    names = {word.text if word is not None else None for word in words}
    return words[0] if len(names) == 1 else None


def _sum(counts: list[Number | None]) -> int | None:
    known = [count.value for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _parts(pod: Pod, following: Following) -> Iterator[Part]:
    for container in pod.containers:
        nodes = [node for part in ("command", "args") if (listed := container.get(part)) for node in listed.items]
        if not nodes or not following.admits(nodes):
            continue
        environment = {name: _word(value, {}) for name, value in _environment(container)}
        words = [_word(node, environment) for node in nodes]
        yield from _launches(words, nodes, environment, following)


def _launches(
    words: list[Word], nodes: list[Node], environment: dict[str, Word], following: Following
) -> Iterator[Part]:
    """The commands of a container: the launches of an inline script, or the single command."""
    at = next((i for i, word in enumerate(words[1:3], 1) if re.fullmatch(r"-[a-z]*c", word.text or "")), 0)
    if command_name(words[0]) in _SHELLS and at and len(nodes) > at + 1:
        known = {name: word.text for name, word in environment.items() if word.text is not None}
        yield from _script(nodes[at + 1], known, following)
    elif (taken := take_apart(words, environment)) is not None:
        following.launches += 1
        yield Part(Document(words[0].span.source, "manifest", launch=taken.launch, problems=taken.problems))


def _script(node: Node, environment: Mapping[str, str], following: Following) -> Iterator[Part]:
    if following.admits_script(node) and (found := inline(node, environment, following)) is not None:
        for document, inner in zip(outside(found), found.documents, strict=True):
            following.launches += 1
            yield Part(document, found, inner)


def _environment(container: Node) -> Iterator[tuple[str, Node]]:
    """Names and values written in the manifest; those from elsewhere stay unknown."""
    listed = container.get("env")
    for item in listed.items if listed else ():
        name, value = item.get("name"), item.get("value")
        if name is not None and value is not None and isinstance(name.value, str):
            yield name.value, value


def _word(node: Node, environment: dict[str, Word]) -> Word:
    """A scalar as a word; $(NAME) is the value set in the manifest, otherwise unknown, like placeholders of
    templates."""
    text, inner = str(node.value) if not isinstance(node.value, bool) else node.span.text, int(node.style in ("'", '"'))
    span = Span(node.span.source, node.span.start + inner, node.span.end - inner)
    typed = text == span.text
    if (filled := _FILLED.search(text)) is not None:
        pieces = (
            without(_FILLED, Piece(text, span)) if typed else [Piece(None, node.span, exact=False, because=filled[0])]
        )
        return word_of(tuple(pieces))
    for name in _REFERENCE.findall(text):
        value = environment.get(name)
        if value is None or value.text is None:
            return Word(None, node.span, because=f"$({name})", editable=False)
        text = text.replace(f"$({name})", value.text)
    return Word(text, span, editable=True) if typed and text == span.text else Word(text, node.span, editable=False)
