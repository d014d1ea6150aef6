"""What is not certain: which releases a run may be of where the one that was asked for is not described, what shows a
fork, and errors of a script's default number of nodes only."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence

from preflight.job import Job
from preflight.loaders.document import Document, Launch, Unknown
from preflight.run.request import Request, Target
from preflight.run.versions import numbers
from preflight.source.finding import Finding, Severity
from preflight.source.message import Message
from preflight.source.pattern import lazy_pattern
from preflight.source.record import replace

OPTION = lazy_pattern(r"--[A-Za-z][\w-]*")
"""What is written like an option, and no slip of the keyboard around one."""

POSITIONAL = lazy_pattern(r"\$\{([1-9]\d?):?-[\"']?\Z")
"""The beginning of a positional parameter's default."""
LONGEST_DEFAULT = 8
PARSER = "argparse"

MULTIPLES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64, 128)
"""Numbers of nodes to try in place of one."""


def missed(asked: Target | None, read_as: Target) -> Target | None:
    """What was asked for, where it is read as another release; a door's run is read as what is beneath it."""
    if asked is None or asked.framework != read_as.framework:
        return None
    wanted = numbers(asked.version)
    return asked if numbers(read_as.version)[: len(wanted)] != wanted else None


def around(asked: Target | None, known: Iterable[Target]) -> tuple[Target, ...]:
    """The described releases just below and just above the one that was asked for; the two oldest,
    or the only one, where it is older than all.

    () where it is described itself, or newer than all: what the newest refuses, the next is taken to refuse. Releases
    count as one where their first two numbers are the same; a first number alone means all that begin with it.
    """
    if asked is None or not (wanted := numbers(asked.version)[:2]):
        return ()
    releases = {numbers(target.version)[:2]: target for target in known if target.framework == asked.framework}
    order = sorted(releases)
    if begun := [version for version in order if version[: len(wanted)] == wanted]:
        return (releases[begun[0]], releases[begun[-1]]) if len(begun) > 1 else ()
    above = bisect(order, wanted)
    if above == len(order):
        return ()
    return tuple(releases[version] for version in order[max(0, above - 1) : max(0, above - 1) + 2])


def strange(job: Job) -> str:
    """An option or a choice which shows that the parser is none of those that are described, where nobody said the
    target; "" where all are known or slips.

    An entry script may have options of its own; only what an earlier release has tells there.
    """
    if job.arguments.certainty.stated:
        return ""
    known = job.arguments.certainty.entry_known
    told = [
        p for p in job.arguments.problems if p.in_use or (p.unknown_option and p.fix is None and (known or p.before))
    ]
    named = [(p.span.text.partition("=")[0], bool(p.before)) for p in sorted(told, key=lambda p: not p.before)]
    return next((option for option, before in named if before or OPTION.fullmatch(option)), "")


def split(found: Sequence[Finding], job: Job) -> list[Finding]:
    """What was found; a fault of parsing in words that another release may read as other words is a warning, and so is
    one in the default of a positional parameter: what no parser takes stands for an argument that has to be passed."""
    doubted = job.arguments.certainty.doubted

    def judged(finding: Finding) -> Finding:
        parses = finding.kind.parses or finding.upstream == PARSER
        if finding.severity is not Severity.ERROR or not parses:
            return finding
        if finding.span.start in doubted:
            return lowered(finding, doubted[finding.span.start])
        place = finding.span
        before = place.source.text[max(0, place.start - LONGEST_DEFAULT) : place.start]
        if (parameter := POSITIONAL.search(before)) is not None:
            said = Message("this is the default of ${number}", number=parameter[1])
            return lowered(finding, said)
        return finding

    return [judged(finding) for finding in found]


def assumed(document: Document, request: Request) -> str:
    """The variable that gives the number of nodes which a script has only a default for;
    "" where nothing is assumed."""
    world = document.launch.world if document.launch is not None else ()
    return world[0].assumed if world and request.devices is None and request.nodes is None else ""


def elsewhere(document: Document, launch: Launch) -> Iterator[Document]:
    """A launch as it is on nodes that nobody knows, and then on some multiples of the default."""
    first = launch.world[0]
    yield replace(document, launch=launch._replace(world=(first._replace(value=Unknown(first.assumed)),), nodes=None))
    for world in [first.value * times for times in MULTIPLES] if isinstance(first.value, int) else []:
        yield replace(document, launch=launch._replace(world=(first._replace(value=world),), nodes=None))


def supposed(found: Sequence[Finding], others: Iterator[Sequence[Finding]], name: str) -> list[Finding]:
    """What was found with a script's default; what another number of nodes cures is a warning,
    and hides no error that none does."""
    always = {(f.rule, f.path, f.span.start, f.message): f for f in next(others, ()) if f.severity is Severity.ERROR}
    said = {(f.rule, f.path, f.span.start, f.message): f for f in found}
    left = {key[:3] for key, f in said.items() if f.severity is Severity.ERROR and key not in always}
    cured: set[tuple[str, str, int]] = set()
    for other in others:
        cured |= left - {(f.rule, f.path, f.span.start) for f in other if f.severity is Severity.ERROR}
        if cured == left:
            break
    because = Message(
        "assumes the script's default for {name}; pass --nodes to check another number of nodes", name=name
    )
    judged = (
        lowered(f, because) if f.severity is Severity.ERROR and key[:3] in cured else f for key, f in said.items()
    )
    return [*judged, *(f for key, f in always.items() if key not in said)]


def lowered(finding: Finding, because: str) -> Finding:
    """A warning in place of an error, with the reason."""
    message = Message("{message}; {because}", message=finding.message, because=because)
    reason = because if finding.severity is Severity.ERROR else finding.lowered
    return replace(finding, severity=Severity.WARNING, message=message, lowered=reason)


def noted(finding: Finding, because: str) -> Finding:
    """A note in place of an error, with the reason: what was checked is not what runs."""
    return replace(lowered(finding, because), severity=Severity.NOTE)
