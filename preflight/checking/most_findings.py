"""How many findings of one rule a report has in one file: thousands help nobody,
and each costs time and memory in every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from preflight.source.finding import Finding, Unverified
from preflight.source.message import Message
from preflight.source.text import Span

MOST_FINDINGS = 100
"""Of one rule in one file."""


MOST_OF_A_RULE = 200
"""A rule is asked for no more about one run: each may take milliseconds."""
MORE = "and {count:,} more findings of {rule} in this file"
MANY_MORE = "and at least {count:,} more findings of {rule} in this file"
UNCOUNTED = "this file has more of these than are counted"


def some_of(found: Iterable[Finding | Unverified], start: Span) -> list[Finding | Unverified]:
    """What a rule has to say, up to a limit; where it has more,
    a finding with the rule's own severity stands for the rest. start: of the run."""
    rest = iter(found)
    said = list(islice(rest, MOST_OF_A_RULE))
    if len(said) == MOST_OF_A_RULE and next(rest, None) is not None:
        place = next((item.span for item in reversed(said) if isinstance(item, Finding)), start)
        said.append(Finding(UNCOUNTED, place))
    return said


def bounded(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, in the same order; of a rule with too many in a file the gravest, the first of them first,
    and one that counts the others."""
    counts = Counter((finding.path, finding.rule) for finding in findings)
    crowded = {key for key, number in counts.items() if number > MOST_FINDINGS + 1}
    if not crowded:
        return list(findings)
    places: dict[tuple[str, str], list[int]] = {}
    for index, finding in enumerate(findings):
        if (key := (finding.path, finding.rule)) in crowded:
            places.setdefault(key, []).append(index)
    dropped: dict[int, Finding | None] = {}
    for found in places.values():
        rest = sorted(sorted(found, key=lambda index: _order(findings[index]))[MOST_FINDINGS:])
        dropped.update(dict.fromkeys(rest))
        dropped[rest[0]] = _more([findings[index] for index in rest])
    kept = (dropped.get(index, finding) for index, finding in enumerate(findings))
    return [finding for finding in kept if finding is not None]


def _order(finding: Finding) -> tuple[bool, int]:
    """The gravest first, and what stands for others last."""
    return finding.message == UNCOUNTED, -_rank(finding)


def _rank(finding: Finding) -> int:
    return finding.severity.rank if finding.severity is not None else 0


def _more(rest: Sequence[Finding]) -> Finding:
    """What stands for all that are left out, at the place of the first of them."""
    gravest = max(rest, key=_rank)
    template = MANY_MORE if any(finding.message == UNCOUNTED for finding in rest) else MORE
    message = Message(template, count=len(rest), rule=gravest.rule)
    return Finding(message, rest[0].span, severity=gravest.severity, rule=gravest.rule)
