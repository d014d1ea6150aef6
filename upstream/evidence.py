"""The upstream sites of each rule, and the releases that contain them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from preflight.program.checkout.guarded_statements import REFUSALS, Site
from upstream.follow import Line
from upstream.places import Place

NEAR = 3
"""The number of lines by which a rule's place may be off from the intended site."""


@dataclass
class Evidence:
    """The sites of one rule: line id → hashes of the statements at which it was read. mentioned: ids that only its text
    names."""

    sites: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    anchors: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    mentioned: set[str] = field(default_factory=set)


Stands = Mapping[str, tuple[Mapping[str, Sequence[str]], Sequence[str]]]
"""Rule → the sites that it covers, each with the releases at which it was read, and those that only its text names."""


@dataclass
class Mapped:
    """The result: rule → evidence, and the places without a site."""

    rules: dict[str, Evidence]
    missing: list[Place]


def mapped(
    places: Sequence[Place],
    lines: Sequence[Line],
    releases: Sequence[str],
    read_at: Sequence[str],
    stands: Sequence[Stands] = (),
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Mapped:
    """The known sites of rules, and the site at each place that a rule names.

    A place is looked up in the release that it names, otherwise in those at which rules are read. renamed: id of a site
    in `stands` → its present id, if that differs.
    """
    index = _Index(lines)
    by_id = {line.id: line for line in lines}
    by_id |= {old: by_id[new] for old, new in renamed.items()}
    rules, missing = _known(stands, by_id, releases), []
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
    """Rule → evidence found earlier or written by hand; former sites are omitted."""
    rules: dict[str, Evidence] = defaultdict(Evidence)
    for known in stands:
        for rule, (sites, mentioned) in known.items():
            rules[rule].mentioned |= {lines[id].id for id in mentioned if id in lines}
            for line, read in ((lines[id], read) for id, read in sites.items() if id in lines):
                for number in (releases.index(name) for name in read if name in releases):
                    if number in line.places:
                        rules[rule].sites[line.id].add(line.places[number].hash)
                        rules[rule].anchors[line.id].add(number)
    return rules


_EXACT = 4


class _Index:
    """Indexes the sites of each release by file."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._files: dict[tuple[int, str], list[tuple[Site, Line]]] = defaultdict(list)
        for line in lines:
            for number, site in line.places.items():
                self._files[number, site.file].append((site, line))

    def at(self, number: int, place: Place) -> tuple[int, Line] | None:
        """The site at a line of a release, and its certainty: a refusal there, one whose branch begins there, one next
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


Others = Mapping[tuple[str, int], Iterable[str]]
"""Line id and release → the rules that were read there in this form."""


def held(
    evidence: Evidence,
    lines: Mapping[str, Line],
    same: Mapping[str, Sequence[str]],
    others: Others = MappingProxyType({}),
) -> tuple[set[int], set[int]]:
    """The releases in which a rule's checks refuse what they refused when they were read, and those that may differ.

    same: line id → hashes that a person found to mean the same. Between two releases at which a rule was read, a line
    counts unchanged; so does a line with a weaker condition than the one that was read, because it refuses all of that
    and more. If another rule was written for such a line, that rule has the message and the fix of the release, and
    this one neither holds nor is in doubt there. A line of documentation proves nothing about a release.
    """
    sure: set[int] = set()
    alike: set[int] = set()
    left: set[int] = set()
    for id, hashes in evidence.sites.items():
        if lines[id].last.kind == "text":
            continue
        known = hashes | set(same.get(id, ()))
        for number, site in lines[id].places.items():
            if as_read(evidence, id, number, site.hash, known):
                sure.add(number)
            elif not _asks_for_less(evidence, lines[id], site):
                alike.add(number)
            else:
                (left if others.get((id, number)) else sure).add(number)
    return sure, alike - sure - left


def as_read(evidence: Evidence, id: str, number: int, hash: str, known: Collection[str]) -> bool:
    """Whether a line is the same in a release as where a rule was read, or the release is between two such releases."""
    return hash in known or min(evidence.anchors[id]) <= number <= max(evidence.anchors[id])


def read_exactly(rules: Mapping[str, Evidence], lines: Mapping[str, Line], same: Mapping[str, Sequence[str]]) -> Others:
    """Line id and release → the rules that were read there as it stands."""
    found: dict[tuple[str, int], set[str]] = {}
    for rule, evidence in rules.items():
        for id, hashes in evidence.sites.items():
            known = hashes | set(same.get(id, ()))
            for number, site in lines[id].places.items():
                if as_read(evidence, id, number, site.hash, known):
                    found.setdefault((id, number), set()).add(rule)
    return found


def carried(evidence: Evidence, lines: Mapping[str, Line], others: Others, sure: Collection[int]) -> set[str]:
    """The rules that refuse everything that a rule refuses, in releases in which its own checks are weaker."""
    return {
        rule
        for id in evidence.sites
        for number, site in lines[id].places.items()
        if number not in sure and _asks_for_less(evidence, lines[id], site)
        for rule in others.get((id, number), ())
    }


def only_wider(
    evidence: Evidence, lines: Mapping[str, Line], same: Mapping[str, Sequence[str]], others: Others
) -> dict[int, set[str]]:
    """The releases in which a rule holds only because its checks are weaker than where it was read, each with the
    lines: the message and the fix may be wrong there."""
    found: dict[int, set[str]] = {}
    exact: set[int] = set()
    for id, hashes in evidence.sites.items():
        known = hashes | set(same.get(id, ()))
        for number, site in lines[id].places.items():
            if as_read(evidence, id, number, site.hash, known):
                exact.add(number)
            elif _asks_for_less(evidence, lines[id], site) and not others.get((id, number)):
                found.setdefault(number, set()).add(id)
    return {number: ids for number, ids in found.items() if number not in exact}


def _asks_for_less(evidence: Evidence, line: Line, site: Site) -> bool:
    return any(wider(site, line.places[number]) for number in evidence.anchors[line.id])


def wider(site: Site, read: Site) -> bool:
    """Whether a check refuses everything that another one refuses, because it requires less before it refuses."""
    both = site.kind in REFUSALS and read.kind in REFUSALS
    return both and site.what == read.what and site.condition < read.condition
