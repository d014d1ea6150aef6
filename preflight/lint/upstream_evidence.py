"""The releases of a framework that contain the checks behind a rule, and their lines."""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache

from preflight import schemas
from preflight.job import Job
from preflight.run.arguments import Switch
from preflight.run.request import gained
from preflight.run.version_ranges import branch, matches, numbers
from preflight.source.finding import Message, Severity
from preflight.source.typing_without_import import Any

REFUSALS = ("assert", "raise", "call", "exit")
"""Kinds of statements at which a run ends."""
Spans = tuple[tuple[int, int], ...]


class Evidence:
    """Facts about the releases of one framework, oldest first."""

    def __init__(self, framework: str) -> None:
        data = schemas.read(f"{framework}/holds")
        self.framework = framework
        self.of: str = data.get("of", "")
        """The framework that has the evidence, if this framework is a part of it."""
        if self.of:
            return
        self.decides: bool = data["decides"]
        self.releases: tuple[str, ...] = tuple(data["commits"])
        releases = [(numbers(one)[:2], at) for at, one in enumerate(self.releases) if not branch(one)[0]]
        self._numbered = [(number, at) for number, at in releases if number]
        self._spans: dict[str, Any] = {**data["holds"]}
        self._covers: dict[str, list[str]] = data.get("covers", {})
        self._entries: dict[tuple[str, str], Any] = {}
        self._standing: dict[int, Mapping[str | None, str]] = {}
        self._first: int = data["checked"]

    def number(self, version: str) -> int:
        """The release of a version: its own, otherwise the newest before it, otherwise the oldest."""
        if version in self.releases:
            return self.releases.index(version)
        at = bisect(self._numbered, (numbers(version)[:2], len(self.releases))) - 1
        return self._numbered[max(at, 0)][1]

    def described(self, version: str) -> bool:
        """Whether the checks of a release are described, not only its options."""
        number = self.number(version)
        return number >= self._first and numbers(version)[:2] == numbers(self.releases[number])[:2]

    @property
    def checked(self) -> tuple[str, ...]:
        """The releases whose checks are described."""
        return self.releases[self._first :]

    def knows(self, rule: str) -> bool:
        """Whether there is any evidence for a rule."""
        return rule in self._spans

    def held(self, rule: str, version: str) -> bool | None:
        """Whether a release has the checks of a rule; None if nothing is known about the rule."""
        spans = self._spans.get(rule)
        if spans is None:
            return None
        if rule in gained(self.framework, version):
            return True
        number = self.number(version)
        return any(first <= number <= last for first, last in spans)

    def covering(self, rule: str) -> Sequence[str]:
        """Rules of other releases that refuse everything that a rule refuses."""
        return self._covers.get(rule, ())

    def place(self, rule: str, version: str) -> str | None:
        """The file and line of the first of a rule's checks in a release, "path:line"; None if it has none there."""
        number = max(self.number(version), self._first)
        read = self._stands(rule)
        sites = sorted(read, key=lambda id: not self._as_read(id, read[id], number))
        return next((place for id in sites if (place := self._at(id, number)) is not None), None)

    def _stands(self, rule: str) -> Mapping[str, Sequence[str]]:
        """Site → the releases at which it was read for a rule, oldest first."""
        found: Mapping[str, Sequence[str]] | Sequence[str] = (self._entry("rules", rule) or ({},))[0]
        return found if isinstance(found, Mapping) else dict.fromkeys(found, (self.checked[0], self.checked[-1]))

    def _as_read(self, id: str, read: Sequence[str], number: int) -> bool:
        """Whether a statement is unchanged in a release, or the release is between two such releases."""
        numbers = [self.releases.index(release) for release in read]
        return numbers[0] <= number <= numbers[-1] or self._hash(id, number) in {self._hash(id, one) for one in numbers}

    def _hash(self, id: str, number: int) -> str | None:
        runs = self._entry("sites", id)[1]
        return next((hash for _, _, hash, first, lines in runs if first <= number < first + len(lines)), None)

    def hashes(self, rule: str) -> frozenset[str]:
        """The hashes of the statements behind a rule, in any release."""
        sites = (self._entry("sites", id) for id in self._stands(rule))
        return frozenset(run[2] for site in sites if site is not None for run in site[1])

    def places(self, rule: str) -> Mapping[str, str]:
        """Place → release, of each statement behind a rule, in the newest release in which it was read."""
        read = ((id, self.releases.index(at[-1])) for id, at in self._stands(rule).items())
        return {place: self.releases[number] for id, number in read if (place := self._at(id, number)) is not None}

    def decided(self) -> Mapping[str, tuple[int, int, int]]:
        """Release → the number of its checks with a rule, without a rule for a reason, and undecided."""
        decisions = schemas.read(f"{self.framework}/decisions")
        owned = {id for sites, mentioned in self._sites["rules"].values() for id in (*sites, *mentioned)}
        reported = {id for ids in decisions.get("reported", {}).values() for id in ids}
        left_out = decisions["sites"].keys() | decisions.get("sites by group", {}).keys()
        kinds = (owned | reported, left_out - owned, decisions["open sites"].keys() - owned)
        sites = self._sites["sites"]
        checks = {id for id, (kind, *_) in sites.items() if kind in REFUSALS}

        def count(ids: Iterable[str], number: int) -> int:
            return sum(id in checks and self._place(sites[id][1], number) is not None for id in ids)

        ruled, left_out, open_ = kinds
        numbers = range(self._first, len(self.releases))
        return {self.releases[at]: (count(ruled, at), count(left_out, at), count(open_, at)) for at in numbers}

    def site(self, id: str, version: str) -> str | None:
        """The file and line of one statement in a release."""
        return self._at(id, max(self.number(version), self._first))

    def moved(self, place: str, read_at: str, version: str) -> str | None:
        """The place of a check of one release in another; None if it does not exist there, or is unknown."""
        id = self._standing_at(read_at).get(place)
        return self.site(id, version) if id is not None else None

    def in_all(self, place: str, read_at: str, releases: Iterable[str]) -> bool:
        """Whether a statement of one release is in all of some releases."""
        return all(self.moved(place, read_at, release) is not None for release in releases)

    def _standing_at(self, version: str) -> Mapping[str | None, str]:
        """Place → check, of one release."""
        number = self.number(version)
        if number not in self._standing:
            sites = self._sites["sites"].items()
            self._standing[number] = {self._place(runs, number): id for id, (_, runs, *_) in sites}
        return self._standing[number]

    def _at(self, id: str, number: int) -> str | None:
        return self._place((self._entry("sites", id) or ("", ()))[1], number)

    def _place(self, runs: Iterable[tuple[int, int, str, int, Sequence[int]]], number: int) -> str | None:
        for file, _, _, first, lines in runs:
            if first <= number < first + len(lines):
                return f"{self._files[file]}:{lines[number - first]}"
        return None

    def _entry(self, part: str, key: str) -> Any:
        """One entry of a part of the places, None if there is none. Each is on a separate line, which is found and read
        individually, because reading all of them takes longer than reading a config."""
        if (part, key) not in self._entries:
            text, start = self._text, self._text.index(f'\n"{part}": {{\n')
            line = text.find(f'\n"{key}": ', start, text.index("\n}", start))
            value = (
                text[line : text.index("\n", line + 1)].partition(": ")[2].removesuffix(",") if line >= 0 else "null"
            )
            self._entries[part, key] = json.loads(value)
        return self._entries[part, key]

    @cached_property
    def _files(self) -> list[str]:
        start = self._text.index('\n"files": [\n')
        return list(json.loads(self._text[start : self._text.index("\n]", start) + 2].partition(": ")[2]))

    @cached_property
    def _text(self) -> str:
        return schemas.text(f"{self.framework}/evidence.json")

    @cached_property
    def _sites(self) -> dict[str, Any]:
        return dict(schemas.read(f"{self.framework}/evidence"))


@cache
def evidence(framework: str) -> Evidence | None:
    """The evidence of a framework; None if none was written, or if declarations decide as before."""
    if not schemas.exists(f"{framework}/holds"):
        return None
    found = Evidence(framework)
    return evidence(found.of) if found.of else found if found.decides else None


def found_places(framework: str, rule: str) -> Mapping[str, str]:
    """Place → release, of the framework checks behind a rule; empty if no evidence was written."""
    known = evidence(framework)
    return {} if known is None else known.places(rule)


def statements_of(rule: str, frameworks: Iterable[str]) -> frozenset[str]:
    """The hashes of the statements behind a rule in some frameworks, in any release."""
    known = filter(None, map(evidence, frameworks))
    return frozenset(hash for one in known for hash in one.hashes(rule))


def found_place(rule: str, versions: Mapping[str, str]) -> str | None:
    """The place at which a run meets a check behind a rule: in the first of its frameworks that has it."""
    found = (known.place(rule, version) for name, version in versions.items() if (known := evidence(name)) is not None)
    return next((place for place in found if place is not None), None)


def switched_at(switch: Switch, versions: Mapping[str, str]) -> str:
    """The place at which a framework changes an argument silently, in the release of the run."""
    found = (
        known.site(switch.site, version)
        for name, version in versions.items()
        if switch.site and (known := evidence(name)) is not None
    )
    return next((place for place in found if place is not None), switch.upstream)


def held_in(rule: str, framework: str, versions: Mapping[str, str]) -> bool | None:
    """Whether any framework of a run has the checks of a rule: the rule's own, or one on top with the same check;
    None if unknown."""
    witnesses = _witnesses(framework, tuple(versions.items()))
    if witnesses is None:
        return False
    told = [known.held(rule, version) for known, version in witnesses]
    return any(told) if any(held is not None for held in told) else None


@lru_cache(maxsize=256)
def _witnesses(framework: str, versions: tuple[tuple[str, str], ...]) -> tuple[tuple[Evidence, str], ...] | None:
    """The evidence of a framework and of those on top of it, each with its version in a run; None if the framework has
    no evidence for a version in the run."""
    own, names = evidence(framework), [name for name, _ in versions]
    if own is not None and all(evidence(name) is not own for name in names):
        return None
    own_and_above = versions[names.index(framework) :] if framework in names else versions
    return tuple((known, version) for name, version in own_and_above if (known := evidence(name)) is not None)


def refused_in(rule: str, framework: str, versions: Mapping[str, str]) -> bool | None:
    """Whether a run with these versions is refused as a rule reports: by its checks, or by others that cover them."""
    held = held_in(rule, framework, versions)
    known = evidence(framework) if not held else None
    others = known.covering(rule) if known is not None else ()
    return any(held_in(other, framework, versions) for other in others) or held


def holds(rule: str, framework: str, versions: Mapping[str, str], declared: str) -> bool:
    """Whether a rule applies to a run: by the evidence, or by its declaration if there is none."""
    held = held_in(rule, framework, versions)
    return matches(versions[framework], declared) if held is None else held


def dated(job: Job, message: str, framework: str, since: str) -> tuple[str, Severity | None]:
    """The message about a run, and the severity if it is not the rule's own. since: the first release that refuses it,
    "" for all of them."""
    certainty = job.arguments.certainty
    if not since or framework not in job.versions or certainty.stated or certainty.has is not None:
        return message, None
    oldest = next(iter(certainty.releases), "") if framework == job.target.framework else ""
    if oldest and numbers(oldest) >= numbers(since):
        return message, None
    taken = "{message}; {framework} before {since} accepts it"
    return Message(taken, message=message, framework=framework, since=since), Severity.WARNING
