"""Uncertain facts about a run: its release, whether it is a fork, its nodes; and what supports a value."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator

from preflight.job import Job
from preflight.loaders.document import Document, Launch, Unknown
from preflight.loaders.process_counts import with_default
from preflight.run.request import Request, Target, patch
from preflight.run.version_ranges import branch, numbers
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import replace

OPTION = lazy_pattern(r"--[A-Za-z][\w-]*")
"""A word in the form of an option, without stray characters around it."""

CANDIDATE = lazy_pattern(r"(?i)\d[.-]?(?:rc|beta|alpha|dev)\.?\d*$")
"""The ending of a version that is not yet a release."""

MULTIPLES = (4, 8, 16, 2, 32, 64, 128, 3, 5, 6, 7, 10, 12, 14, 20, 24, 28, 48)
"""Numbers of nodes to try instead of one."""


def missed(asked: Target | None, read_as: Target) -> Target | None:
    """The requested release, if it is read as another one; a front end's run is read as the framework below it. A patch
    release counts as itself: its differences from its release are described."""
    if asked is None or asked.framework != read_as.framework or patch(asked).get("of") == read_as.version:
        return None
    line, number = branch(asked.version)
    if line and branch(read_as.version)[0] == line:
        return asked if branch(read_as.version)[1] != number else None
    wanted = numbers(asked.version)
    candidate = CANDIDATE.search(asked.version) is not None and asked.version != read_as.version
    return asked if candidate or numbers(read_as.version)[: len(wanted)] != wanted else None


def undescribed(job: Job) -> Target | None:
    """The release of a run, requested or stated by its files, that is read as another one because it is not
    described."""
    if job.asked is not None:
        return job.asked
    framework, _, version = job.arguments.certainty.named.rpartition(" ")
    return Target(framework, version) if framework == job.target.framework and numbers(version) else None


def around(asked: Target | None, known: Iterable[Target]) -> tuple[Target, ...]:
    """The described releases just below and just above the requested one; the two oldest, or the only one, if it is
    older than all. () if it is described itself, or newer than all: the next release is assumed to refuse what the
    newest refuses. Releases with the same first two numbers count as one; a first number alone means all that begin
    with it.
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


def enclosing(asked: Target, known: Iterable[Target]) -> tuple[Target, ...]:
    """The described releases just below and just above the requested one, patch releases included; () if it is older or
    newer than all."""
    line, wanted = branch(asked.version)
    own = ((branch(target.version), target) for target in known if target.framework == asked.framework)
    releases = {number: target for (other, number), target in own if other == line and number}
    older = [number for number in releases if number < wanted]
    newer = [number for number in releases if number > wanted]
    return (releases[max(older)], releases[min(newer)]) if wanted and older and newer else ()


def strange(job: Job) -> str:
    """An option or a choice which shows that the parser is not a described one, if the call does not state the target;
    "" if all are known or misspelt. Entry scripts may add options; for them only options of an earlier release count.
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
    """The variable for the number of nodes of which a script has only a default; "" if nothing is assumed."""
    launch = document.launch
    if launch is None or request.devices is not None or request.nodes is not None:
        return ""
    stated = launch.world[0].assumed if launch.world else ""
    return stated or _own_nodes(launch)[1]


_NODES_KEY = lazy_pattern(r"[-+\w.]{0,80}nodes=?")


def _own_nodes(launch: Launch) -> tuple[int, str]:
    """The place among a program's own words of the number of nodes of which the script has only a default, and its
    variable; "" if there is none."""
    for at, word in enumerate(launch.words):
        last = word.pieces[-1] if word.pieces else word
        key = word.pieces[0].text if word.pieces else launch.words[at - 1].text if at else None
        named = key is not None and (last.text or "").isdecimal() and _NODES_KEY.fullmatch(key) is not None
        if named and (variable := with_default(last.span)):
            return at, variable
    return 0, ""


def _with_nodes(launch: Launch, at: int, nodes: int | None) -> Launch:
    """A launch with another number of nodes among the program's own words; None: unknown."""
    word = launch.words[at]
    text = str(nodes) if nodes is not None else None
    pieces = (*word.pieces[:-1], word.pieces[-1]._replace(text=text)) if word.pieces else ()
    whole = "".join(piece.text or "" for piece in pieces) if pieces else text
    other = word._replace(text=whole if nodes is not None else None, pieces=pieces)
    return launch._replace(words=(*launch.words[:at], other, *launch.words[at + 1 :]))


def elsewhere(document: Document, launch: Launch) -> Iterator[Document]:
    """A launch as written for an unknown number of nodes, and then with multiples of the default."""
    at, variable = _own_nodes(launch)
    if variable and not (launch.world and launch.world[0].assumed):
        usual = int((launch.words[at].pieces or launch.words[at : at + 1])[-1].text or 1)
        yield replace(document, launch=_with_nodes(launch, at, None))
        for times in MULTIPLES:
            yield replace(document, launch=_with_nodes(launch, at, usual * times))
        return
    first = launch.world[0]
    yield replace(document, launch=launch._replace(world=(first._replace(value=Unknown(first.assumed)),), nodes=None))
    for world in [first.value * times for times in MULTIPLES] if isinstance(first.value, int) else []:
        yield replace(document, launch=launch._replace(world=(first._replace(value=world),), nodes=None))


_COMMON = frozenset("size num model parallel use layers config enable type path data".split())
"""Words that occur in this many arguments distinguish nothing."""


def support(name: str, job: Job) -> int:
    """The number of other explicit arguments that share a word with an argument's name, for comparing the two sides of
    a conflict."""
    words = _words(name)
    return sum(not words.isdisjoint(_words(other)) for other in job.arguments.written if other != name)


def _words(name: str) -> frozenset[str]:
    words = name.rpartition(".")[2].split("_")
    return frozenset(word.removesuffix("s") for word in words if word not in _COMMON) - {""}


def topic(name: str) -> str:
    """The subject of an argument: the first distinguishing word of its name, "" if there is none."""
    words = name.rpartition(".")[2].split("_")
    return next((word.removesuffix("s") for word in words if word not in _COMMON), "")
