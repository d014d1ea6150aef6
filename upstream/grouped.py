"""Checks that are decided together, by their place and by their form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from preflight.program.checkout.guarded_statements import REFUSALS, Site
from upstream.follow import Line

CALLED = re.compile(r"(?:self\.|cls\.)?(\w+)\(")


class Seen:
    """The functions of each release that contain a check."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._refusing: dict[int, set[str]] = {}
        for line in lines:
            for number, site in line.places.items():
                if site.kind in REFUSALS:
                    self._refusing.setdefault(number, set()).add(site.function.rpartition(".")[2])

    def refuses(self, number: int, function: str) -> bool:
        """Whether a function of that name refuses something in a release, or calls a check that may."""
        return function in self._refusing.get(number, ())


def _called(seen: Seen, number: int, site: Site) -> bool:
    """A call of a function whose checks are in the list themselves."""
    name = CALLED.match(site.what)
    return site.kind == "call" and name is not None and seen.refuses(number, name[1])


def _silent(seen: Seen, number: int, site: Site) -> bool:
    """A call of a function that only looks like a check, because nothing in it refuses."""
    name = CALLED.match(site.what)
    return site.kind == "call" and name is not None and not seen.refuses(number, name[1])


def _handler(seen: Seen, number: int, site: Site) -> bool:
    """An error that is passed on with another message."""
    return any(part.startswith("except ") for part in site.condition)


def _place(seen: Seen, number: int, site: Site) -> bool:
    """Only the place: a person read the statement there."""
    return True


HOW: Mapping[str, Callable[[Seen, int, Site], bool]] = {
    "called": _called,
    "silent": _silent,
    "handler": _handler,
    "place": _place,
}
"""The condition that a check must meet, besides its place, in each release that has it."""


def grouped(
    lines: Sequence[Line],
    followed: Iterable[Line],
    groups: Mapping[str, Mapping[str, Any]],
    counts: Callable[[Site], bool],
) -> dict[str, str]:
    """Line id → the first group that decides it, of these lines.

    followed: every line of the framework. counts: whether a place needs a human decision.
    """
    seen = Seen(followed)
    ways = [
        (name, HOW[group["how"]], re.compile("|".join(f"(?:{where})" for where in group["where"])))
        for name, group in groups.items()
    ]
    found = {}
    for line in lines:
        for name, how, where in ways:
            if all(
                where.match(f"{site.file}:{site.function}") and how(seen, number, site)
                for number, site in line.places.items()
                if counts(site)
            ):
                found[line.id] = name
                break
    return dict(sorted(found.items()))
