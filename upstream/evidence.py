"""Which sites upstream each rule stands for, and in which releases they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from preflight.dialects.checkout.sites import REFUSALS, Site
from upstream.follow import Line
from upstream.places import Place

NEAR = 3
"""Lines by which a rule may miss the site that it means."""


@dataclass
class Evidence:
    """The sites of one rule: line id → hashes of what it was read at. mentioned: ids that only its text names."""

    sites: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    anchors: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    mentioned: set[str] = field(default_factory=set)


Stands = Mapping[str, tuple[Mapping[str, Sequence[str]], Sequence[str]]]
"""Rule → the sites that it stands for, each with the releases at which it was read,
and those that only its text names."""


@dataclass
class Mapped:
    """What was found: rule → evidence, and the places where no site is."""

    rules: dict[str, Evidence]
    missing: list[Place]


def mapped(
    places: Sequence[Place],
    lines: Sequence[Line],
    releases: Sequence[str],
    read_at: Sequence[str],
    stands: Sequence[Stands] = (),
) -> Mapped:
    """The sites that rules are known to stand for, and that at each place which a rule names.

    A place is looked up at the release it names, else at those that rules are read at.
    """
    index = _Index(lines)
    rules, missing = _known(stands, {line.id: line for line in lines}, releases), []
    for place in places:
        wanted = [releases.index(name) for name in ([place.release] if place.release else read_at) if name in releases]
        hits = [
            (score, -turn, number, line)
            for turn, number in enumerate(wanted)
            if (hit := index.at(number, place))
            for score, line in [hit]
        ]
        if not hits:
            missing += [place] if place.declared else []
            continue
        score, _, number, line = max(hits, key=lambda hit: hit[:2])
        if place.declared:
            rules[place.rule].sites[line.id].add(line.places[number].hash)
            rules[place.rule].anchors[line.id].add(number)
        elif score == _EXACT:
            rules[place.rule].mentioned.add(line.id)
    for evidence in rules.values():
        evidence.mentioned -= set(evidence.sites)
    return Mapped(dict(sorted(rules.items())), missing)


def _known(stands: Sequence[Stands], lines: Mapping[str, Line], releases: Sequence[str]) -> dict[str, Evidence]:
    """Rule → evidence, of what was found before or somebody wrote down; what is no site any more is left out."""
    rules: dict[str, Evidence] = defaultdict(Evidence)
    for known in stands:
        for rule, (sites, mentioned) in known.items():
            rules[rule].mentioned |= {id for id in mentioned if id in lines}
            for id, read in sites.items():
                for number in (releases.index(name) for name in read if name in releases):
                    if id in lines and number in lines[id].places:
                        rules[rule].sites[id].add(lines[id].places[number].hash)
                        rules[rule].anchors[id].add(number)
    return rules


_EXACT = 4


class _Index:
    """The sites of each release by file."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._files: dict[tuple[int, str], list[tuple[Site, Line]]] = defaultdict(list)
        for line in lines:
            for number, site in line.places.items():
                self._files[number, site.file].append((site, line))

    def at(self, number: int, place: Place) -> tuple[int, Line] | None:
        """The site at a line of a release, and how surely: a refusal there, one whose branch begins there, one next
        to it, another statement."""
        scored = [
            (_score(site, place.line), -abs(site.line - place.line), line)
            for site, line in self._files[number, place.file]
        ]
        best = max(scored, key=lambda found: found[:2], default=(0, 0, None))
        return (best[0], best[2]) if best[0] and best[2] is not None else None


def _score(site: Site, line: int) -> int:
    refuses = site.kind in REFUSALS
    if site.line <= line <= site.end:
        return _EXACT if refuses or site.kind != "statement" else 2
    if refuses and site.start <= line <= site.end:
        return 3
    return 1 if refuses and abs(site.line - line) <= NEAR else 0


def held(evidence: Evidence, lines: Mapping[str, Line], same: Mapping[str, Sequence[str]]) -> tuple[set[int], set[int]]:
    """The releases in which a rule's checks refuse what they refused where they were read, and those that may differ.

    same: line id → hashes that somebody found to mean the same. Between two releases at which a rule was read, a line
    counts as it is; so does one that asks for less than what was read: it refuses all of that, and more. A line of
    documentation tells of no release.
    """
    sure: set[int] = set()
    alike: set[int] = set()
    for id, hashes in evidence.sites.items():
        if lines[id].last.kind == "text":
            continue
        known = hashes | set(same.get(id, ()))
        read = [lines[id].places[number] for number in evidence.anchors[id]]
        first, last = min(evidence.anchors[id]), max(evidence.anchors[id])
        for number, site in lines[id].places.items():
            is_sure = site.hash in known or first <= number <= last or any(wider(site, one) for one in read)
            (sure if is_sure else alike).add(number)
    return sure, alike - sure


def wider(site: Site, read: Site) -> bool:
    """Whether a check refuses all that another one refuses: it asks for less before it does."""
    both = site.kind in REFUSALS and read.kind in REFUSALS
    return both and site.what == read.what and site.condition < read.condition
