"""Follows each site through the releases: the same check at another line, in another file, or with other words."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path

from preflight.program.checkout.guarded_statements import DIGITS, Site
from preflight.source import cache_folder as kept

ALIKE = 0.7
"""The similarity from which one of two conditions in a function counts as the other, reworded."""
OWN = 0.6
"""The required similarity of the parts in which they differ."""
TELLING = 12
"""The length in characters below which a condition identifies nothing outside its own file."""


Ids = Mapping[tuple[str, int, str], str]
"""File, line and hash → the former id of a site in a release."""


class Line:
    """One site through the releases: release number → the site there. before: its ids when the releases were last
    followed, the oldest first; more than one if it consisted of several sites then."""

    def __init__(self, release: int, site: Site) -> None:
        self.places: dict[int, Site] = {release: site}
        self.id = ""
        self.before: list[str] = []

    @property
    def last(self) -> Site:
        return self.places[max(self.places)]

    @property
    def first(self) -> Site:
        return self.places[min(self.places)]


Key = Callable[[Site], Hashable]
KEYS: tuple[Key, ...] = (
    lambda site: (site.file, site.function, site.hash, site.number),
    lambda site: (site.file, site.hash, site.number),
    lambda site: (site.file.rpartition("/")[2], site.function.rpartition(".")[2], site.hash) if told(site) else None,
    lambda site: site.hash if told(site) else None,
)
"""The keys by which two sites of different releases count as the same, the most certain first; None: there is none."""


def told(site: Site) -> bool:
    """Whether the condition alone says which check it is."""
    return len(site.what) + sum(map(len, site.condition)) >= TELLING


def followed(releases: Sequence[Sequence[Site]], before: Sequence[Ids] = (), names: Sequence[str] = ()) -> list[Line]:
    """The lines of all sites, given the sites of each release, the oldest first. before: the former ids of the sites of
    each release: sites with the same id stay one line, even if a release is added in between. names: a name for the
    sites of each release, under which the lines up to it are kept, so that another run continues there."""
    steps = list(_steps(before, names))
    start, lines = _continued(releases, steps)
    for number, sites in enumerate(releases):
        if number >= start:
            had = _had(sites, before[number]) if before else {}
            lines = _followed_to(number, lines, list(sites), had)
            if steps:
                _keep(steps[number], lines, releases[: number + 1])
    _name(lines)
    return lines


def _followed_to(number: int, lines: list[Line], new: list[Site], had: Mapping[int, str]) -> list[Line]:
    """The lines with the sites of one more release."""
    old, new = _same_id(number, list(lines), new, had)
    for key in KEYS:
        old, new = _matched(number, old, new, key)
    new = _reworded(number, old, new)
    lines = [*lines, *(Line(number, site) for site in new)]
    for line in lines if had else ():
        name = had.get(id(line.places[number])) if number in line.places else None
        line.before += [name] if name is not None and name not in line.before else []
    return lines


FOLDER = "lines"
"""The folder of the cache with the lines up to a release."""


def _steps(before: Sequence[Ids], names: Sequence[str]) -> Iterator[str]:
    """For each release, a name of everything that its lines follow from."""
    above = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    for number, name in enumerate(names):
        above = kept.digest(repr((above, name, sorted(before[number].items()) if before else ())))
        yield f"{FOLDER}/{above}.json"


def _keep(step: str, lines: Sequence[Line], releases: Sequence[Sequence[Site]]) -> None:
    """Keep lines, as the numbers of their sites in each release."""
    at = [{id(site): place for place, site in enumerate(sites)} for sites in releases]
    rows = [[line.before, [(number, at[number][id(site)]) for number, site in line.places.items()]] for line in lines]
    kept.write_data(step, zlib.compress(json.dumps(rows).encode(), 1))


def _continued(releases: Sequence[Sequence[Site]], steps: Sequence[str]) -> tuple[int, list[Line]]:
    """The number of the first release for which no lines are kept, and the lines up to it."""
    for start in range(len(steps), 0, -1):
        data = kept.read_data(steps[start - 1])
        if data is not None:
            return start, [_line(releases, *row) for row in json.loads(zlib.decompress(data))]
    return 0, []


def _line(releases: Sequence[Sequence[Site]], before: list[str], places: Sequence[Sequence[int]]) -> Line:
    (number, place), *others = places
    line = Line(number, releases[number][place])
    line.places |= {number: releases[number][place] for number, place in others}
    line.before = before
    return line


def _had(sites: Iterable[Site], before: Ids) -> dict[int, str]:
    """The former id of each site, by the identity of the site; each id once."""
    left, found = dict(before), dict[int, str]()
    for site in sites:
        if (name := left.pop((site.file, site.line, site.hash), None)) is not None:
            found[id(site)] = name
    return found


def _same_id(number: int, old: list[Line], new: list[Site], had: Mapping[int, str]) -> tuple[list[Line], list[Site]]:
    """Joins sites that had the same id. Returns the others."""
    lines = {name: line for line in old for name in line.before}
    left, taken = [], set()
    for site in new:
        line = lines.get(had.get(id(site), ""))
        if line is None:
            left.append(site)
        else:
            line.places[number] = site
            taken.add(id(line))
    return [line for line in old if id(line) not in taken], left


def _name(lines: Iterable[Line]) -> None:
    """Keeps the name of each line, and names a new one after its oldest place, so that names stay when releases are
    added."""
    seen: Counter[str] = Counter()
    kept = {id for line in lines for id in line.before[:1]}
    for line in lines:
        if line.before:
            line.id = line.before[0]
            continue
        whole = f"{line.first.file}\n{line.first.function}\n{line.first.hash}\n{line.first.number}"
        name = hashlib.sha1(whole.encode(), usedforsecurity=False).hexdigest()[:DIGITS]
        while not line.id or line.id in kept:
            seen[name] += 1
            line.id = name if seen[name] == 1 else f"{name}-{seen[name]}"


def _matched(number: int, old: list[Line], new: list[Site], key: Key) -> tuple[list[Line], list[Site]]:
    """Joins sites with the same key, in order.

    Returns the others. If several old ones share a key, the youngest counts.
    """
    known: dict[Hashable, list[Line]] = defaultdict(list)
    for line in sorted(old, key=lambda line: max(line.places), reverse=True):
        if (name := key(line.last)) is not None:
            known[name].append(line)
    left, taken = [], set()
    for site in new:
        candidates = known.get(key(site), []) if key(site) is not None else []
        if not candidates:
            left.append(site)
            continue
        line = candidates.pop(0)
        line.places[number] = site
        taken.add(id(line))
    return [line for line in old if id(line) not in taken], left


def _reworded(number: int, old: list[Line], new: list[Site]) -> list[Site]:
    """Joins similar sites of the previous release in the same function.

    Returns the others.
    """
    before: dict[tuple[str, str, str], list[Line]] = defaultdict(list)
    for line in old:
        if number - 1 in line.places:
            before[_room(line.last)].append(line)
    pairs = []
    for place, site in enumerate(new):
        for line in before.get(_room(site), ()):
            if (score := likeness(line.last, site)) >= ALIKE:
                pairs.append((-score, abs(line.last.line - site.line), place, line))
    taken: set[int] = set()
    used: set[int] = set()
    for _, _, place, line in sorted(pairs, key=lambda pair: pair[:3]):
        if place not in taken and id(line) not in used:
            line.places[number] = new[place]
            taken.add(place)
            used.add(id(line))
    return [site for place, site in enumerate(new) if place not in taken]


def _room(site: Site) -> tuple[str, str, str]:
    return site.file, site.function.rpartition(".")[2], "refuse" if site.kind in ("assert", "raise") else site.kind


def likeness(one: Site, other: Site) -> float:
    """The similarity of two sites: the common share of the condition, or the similarity of its text.

    If both have parts that the other lacks, these must be similar, too: checks under one condition differ in nothing
    else.
    """
    if one.what != other.what and _alike(one.what, other.what, ALIKE) < ALIKE:
        return 0.0
    shared, every = one.condition & other.condition, one.condition | other.condition
    if not every:
        return 1.0 if one.what or other.what else 0.0
    ours, theirs = one.condition - shared, other.condition - shared
    rest = _alike(" ".join(sorted(ours)), " ".join(sorted(theirs)), OWN) if ours and theirs else 1.0
    if rest < OWN:
        return 0.0
    return max(len(shared) / len(every), rest if not shared else (rest + len(shared) / len(every)) / 2)


@lru_cache(maxsize=1 << 18)
def _alike(one: str, other: str, least: float) -> float:
    """The similarity of two texts; 0 if it is below a bar. Lengths and letters bound it: the bounds of SequenceMatcher,
    without its index of the text."""
    whole = len(one) + len(other)
    if whole and 2 * min(len(one), len(other)) < least * whole:
        return 0.0
    letters, others = _letters(one), _letters(other)
    shared = sum(min(count, others.get(letter, 0)) for letter, count in letters.items())
    if whole and 2 * shared < least * whole:
        return 0.0
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


@lru_cache(maxsize=1 << 16)
def _letters(text: str) -> Mapping[str, int]:
    return Counter(text)
