"""What is not certain: errors of one release only, where another between two was asked for; errors of a script's default number of nodes only."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence

from preflight.constraints.versions import numbers
from preflight.document import Document, Unknown
from preflight.finding import Finding, Severity
from preflight.record import replace
from preflight.request import Request, Target

OPTIONS = frozenset(["unknown-flag", "bad-choice", "bad-value", "missing-value", "stray-word"])
"""Rules that compare a command with the options of a release."""


def missed(asked: Target | None, read_as: Target) -> Target | None:
    """What was asked for, where it is read as another release."""
    wanted = numbers(asked.version) if asked is not None else ()
    return asked if numbers(read_as.version)[: len(wanted)] != wanted else None


def around(asked: Target | None, known: Iterable[Target]) -> tuple[Target, ...]:
    """The described releases just below and just above the one that was asked for; the two oldest, or the only one, where it is older than all.

    () where it is described itself, or newer than all: what the newest refuses, the next is taken to refuse. Releases count as one where
    their first two numbers are the same.
    """
    if asked is None or not (wanted := numbers(asked.version)[:2]):
        return ()
    releases = {numbers(target.version)[:2]: target for target in known if target.framework == asked.framework}
    order = sorted(releases)
    above = bisect(order, wanted)
    if wanted in releases or above == len(order):
        return ()
    return tuple(releases[version] for version in order[max(0, above - 1) : max(0, above - 1) + 2])


def doubted(found: Sequence[Finding], other: Sequence[Finding], asked: Target, there: Target) -> list[Finding]:
    """What was found as one of the releases around; where the other one has no error at the place of an error, it is a warning."""
    places = {(f.path, f.span.start) for f in other if f.severity is Severity.ERROR}
    because = f"read as {there} it is no error, and {asked.version} is not described"
    return [f if f.severity is not Severity.ERROR or (f.path, f.span.start) in places else _lowered(f, because) for f in found]


def alone(found: Sequence[Finding], asked: Target, there: Target) -> list[Finding]:
    """What was found as the only release that is described, and is newer: what its own rules and options refuse is a warning."""
    because = f"so it is in {there}, and {asked.version} is not described"
    return [_lowered(f, because) if f.severity is Severity.ERROR and ("/" in f.rule or f.rule in OPTIONS) else f for f in found]


def elsewhere(document: Document, request: Request) -> Document | None:
    """A launch as it is where the environment gives the number of nodes that the script has only a default for; None where nothing is assumed."""
    launch = document.launch
    if launch is None or not launch.world or not launch.world[0].assumed or request.devices is not None or request.nodes is not None:
        return None
    first = launch.world[0]
    return replace(document, launch=launch._replace(world=(first._replace(value=Unknown(first.assumed)),), nodes=None))


def supposed(found: Sequence[Finding], other: Sequence[Finding], name: str) -> list[Finding]:
    """What was found with a script's default; what does not hold for any number of nodes is a warning, and hides no error that does."""
    always = {(f.rule, f.path, f.span.start, f.message): f for f in other if f.severity is Severity.ERROR}
    said = {(f.rule, f.path, f.span.start, f.message): f for f in found}
    because = f"{name} is only given a default here, and with another it may be no error"
    lowered = (f if f.severity is not Severity.ERROR or key in always else _lowered(f, because) for key, f in said.items())
    return [*lowered, *(f for key, f in always.items() if key not in said)]


def _lowered(finding: Finding, because: str) -> Finding:
    return replace(finding, severity=Severity.WARNING, message=f"{finding.message}; {because}")
