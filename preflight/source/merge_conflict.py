"""Unresolved merge conflicts: the markers that git writes into a file."""

from __future__ import annotations

import re

from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple

_MARKERS = (
    lazy_pattern(r"(?m)^<{7} [^\r\n]*\r?$"),
    lazy_pattern(r"(?m)^={7}\r?$"),
    lazy_pattern(r"(?m)^>{7} [^\r\n]*\r?$"),
)
LONGEST = 60


class Conflict(NamedTuple):
    """The first merge conflict of a text, and the place of its first marker."""

    message: Message
    start: int
    end: int


def conflict(text: str) -> Conflict | None:
    """The first merge conflict in a text: its three markers in order."""
    found: list[re.Match[str]] = []
    for marker in _MARKERS:
        one = marker.search(text, found[-1].end() if found else 0)
        if one is None:
            return None
        found.append(one)
    first, last = (found[place][0].rstrip()[:LONGEST] for place in (0, 2))
    message = Message(
        "unresolved merge conflict, from `{first}` to `{last}` on line {line}",
        first=first,
        last=last,
        line=text.count("\n", 0, found[2].start()) + 1,
    )
    return Conflict(message, found[0].start(), found[0].start() + len(first))
