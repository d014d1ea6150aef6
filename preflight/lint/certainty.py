"""What is not certain of a run: its release, whether it is a fork, its nodes; and what supports a value."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator

from preflight.job import Job
from preflight.loaders.document import Document, Launch, Unknown
from preflight.run.patches import patch
from preflight.run.request import Request, Target
from preflight.run.versions import branch, numbers
from preflight.source.pattern import lazy_pattern
from preflight.source.record import replace

OPTION = lazy_pattern(r"--[A-Za-z][\w-]*")
"""A word in the form of an option, without a stray character around it."""

CANDIDATE = lazy_pattern(r"(?i)\d[.-]?(?:rc|beta|alpha|dev)\.?\d*$")
"""How a version ends that is none of a release yet."""

MULTIPLES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64, 128)
"""Numbers of nodes to try instead of one."""


def missed(asked: Target | None, read_as: Target) -> Target | None:
    """What was asked for, where it is read as another release; a front end's run is read as the framework below it.
    A patch release is its own: what it has in other words than its release is described."""
    if asked is None or asked.framework != read_as.framework or patch(asked).get("of") == read_as.version:
        return None
    line, number = branch(asked.version)
    if line and branch(read_as.version)[0] == line:
        return asked if branch(read_as.version)[1] != number else None
    wanted = numbers(asked.version)
    candidate = CANDIDATE.search(asked.version) is not None and asked.version != read_as.version
    return asked if candidate or numbers(read_as.version)[: len(wanted)] != wanted else None


def around(asked: Target | None, known: Iterable[Target]) -> tuple[Target, ...]:
    """The described releases just below and just above the one that was asked for; the two oldest,
    or the only one, where it is older than all.

    () where it is described itself, or newer than all: what the newest refuses, the next is taken to refuse. Releases
    count as one where their first two numbers are the same; a first number alone means all that begin with it.
    """
    line, wanted = branch(asked.version) if asked is not None else ("", ())
    if asked is None or not (wanted := wanted[:2]):
        return ()
    own = ((branch(target.version), target) for target in known if target.framework == asked.framework)
    releases = {number[:2]: target for (other, number), target in own if other == line}
    order = sorted(releases)
    if begun := [version for version in order if version[: len(wanted)] == wanted]:
        return (releases[begun[0]], releases[begun[-1]]) if len(begun) > 1 else ()
    above = bisect(order, wanted)
    if above == len(order):
        return ()
    return tuple(releases[version] for version in order[max(0, above - 1) : max(0, above - 1) + 2])


def strange(job: Job) -> str:
    """An option or a choice which shows that the parser is none of those that are described, where the call does not
    state the target; "" where all are known or slips.

    An entry script may add options; there only what an earlier release has counts.
    """
    if job.arguments.certainty.stated:
        return ""
    known = job.arguments.certainty.entry_known
    told = [
        p for p in job.arguments.problems if p.in_use or (p.unknown_option and p.fix is None and (known or p.before))
    ]
    named = [(p.span.text.partition("=")[0], bool(p.before)) for p in sorted(told, key=lambda p: not p.before)]
    return next((option for option, before in named if before or OPTION.fullmatch(option)), "")


def assumed(document: Document, request: Request) -> str:
    """The variable that gives the number of nodes which a script has only a default for;
    "" where nothing is assumed."""
    world = document.launch.world if document.launch is not None else ()
    return world[0].assumed if world and request.devices is None and request.nodes is None else ""


def elsewhere(document: Document, launch: Launch) -> Iterator[Document]:
    """A launch as it is on an unknown number of nodes, and then on some multiples of the default."""
    first = launch.world[0]
    yield replace(document, launch=launch._replace(world=(first._replace(value=Unknown(first.assumed)),), nodes=None))
    for world in [first.value * times for times in MULTIPLES] if isinstance(first.value, int) else []:
        yield replace(document, launch=launch._replace(world=(first._replace(value=world),), nodes=None))


_COMMON = frozenset("size num model parallel use layers config enable type path data".split())
"""Words of so many arguments that they distinguish nothing."""


def support(name: str, job: Job) -> int:
    """How many other arguments that were typed share a word with an argument's name.

    It compares the two sides of one conflict.
    """
    words = _words(name)
    return sum(not words.isdisjoint(_words(other)) for other in job.arguments.written if other != name)


def _words(name: str) -> frozenset[str]:
    words = name.rpartition(".")[2].split("_")
    return frozenset(word.removesuffix("s") for word in words if word not in _COMMON) - {""}


def topic(name: str) -> str:
    """What an argument is about: the first of its words that distinguishes it, "" where none does."""
    words = name.rpartition(".")[2].split("_")
    return next((word.removesuffix("s") for word in words if word not in _COMMON), "")
