"""The devices that a manifest asks for, given to the launches of its containers."""

from __future__ import annotations

from preflight.loaders.document import Count, Launch, Unknown, Word
from preflight.source.record import NamedTuple

_STATED = {"torch": ("nnodes", "nproc"), "msrun": ("worker",), "mpi": ("n",)}


class Asked(NamedTuple):
    """The devices of a job in all, its nodes, the devices of each, and which they are."""

    world: Count
    nodes: int | None
    per_node: int | None
    device: Word | None = None


def counted(launch: Launch, asked: Asked) -> Launch:
    """The job's devices beside what the launcher itself states; what a launcher takes from defaults,
    the operator sets."""
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
    """What a command states that runs by itself on one of the nodes; where it states nothing,
    whoever wrote it places the processes."""
    if _stated(launch)[1] and not _open(launch):
        return launch
    return launch._replace(
        world=(Count(Unknown("Ray's workers"), launch.entry.span, "RayJob"),), nodes=None, per_node=None
    )


def _stated(launch: Launch) -> tuple[set[str], set[str]]:
    """The options that state the processes of a launcher, and those of them that are typed."""
    names = next((names for start, names in _STATED.items() if start in launch.launcher), ())
    words = [
        word.text.lstrip("-").replace("_", "-")
        for word in launch.launcher_words
        if word.text and word.text.startswith("-") and not word.uses
    ]
    return set(names), {name for name in names if any(text.startswith(name) for text in words)}


def _open(launch: Launch) -> bool:
    return any(word.text is None or word.uses for word in launch.launcher_words)
