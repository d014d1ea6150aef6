"""A release that nobody described, between two that are: what only one of them refuses is not certain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from preflight.constraints.versions import numbers
from preflight.finding import Finding, Severity
from preflight.record import replace
from preflight.request import Target


def missed(asked: Target | None, read_as: Target) -> Target | None:
    """What was asked for, where it is read as another release."""
    wanted = numbers(asked.version) if asked is not None else ()
    return asked if numbers(read_as.version)[: len(wanted)] != wanted else None


def around(asked: Target | None, known: Iterable[Target]) -> tuple[Target, ...]:
    """The described releases just below and just above the one that was asked for; () where it is described itself, or lies beyond them.

    Releases count as one where their first two numbers are the same.
    """
    if asked is None or not (wanted := numbers(asked.version)[:2]):
        return ()
    releases = {numbers(target.version)[:2]: target for target in known if target.framework == asked.framework}
    below, above = [v for v in releases if v < wanted], [v for v in releases if v > wanted]
    return (releases[max(below)], releases[min(above)]) if wanted not in releases and below and above else ()


def doubted(found: Sequence[Finding], other: Sequence[Finding], asked: Target, there: Target) -> list[Finding]:
    """What was found as one neighbour of a release reads it; where the other one has no error at the place of an error, it is a warning."""
    places = {(f.path, f.span.start) for f in other if f.severity is Severity.ERROR}
    return [
        replace(f, severity=Severity.WARNING, message=f"{f.message}; read as {there} it is no error, and {asked.version} is not described")
        if f.severity is Severity.ERROR and (f.path, f.span.start) not in places
        else f
        for f in found
    ]
