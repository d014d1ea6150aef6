"""All data extracted from a framework, release by release, and its relation to the rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from preflight.program.checkout.guarded_statements import Site
from upstream.evidence import Mapped, mapped
from upstream.extraction import changes, scoped, sites_name, sites_of
from upstream.follow import Line, followed
from upstream.frameworks import FRAMEWORKS, Framework, Release
from upstream.known import Known
from upstream.options import Row, Table, delta, options
from upstream.places import all_rules, places
from upstream.repositories import Repositories, followed_releases

Say = Callable[[str], None]


@dataclass(frozen=True)
class Checks:
    """The lines of a framework's sites in each release that is followed, and the rules that use them."""

    framework: Framework
    releases: Sequence[Release]
    lines: Sequence[Line]
    mapped: Mapped

    @property
    def by_id(self) -> Mapping[str, Line]:
        return {line.id: line for line in self.lines}

    def number(self, followed_release: int) -> int:
        """The number, among all releases, of a followed release."""
        return self.framework.releases.index(self.releases[followed_release])

    @property
    def renamed(self) -> Mapping[str, str]:
        """Former id of a site → its present id, if two sites have become one."""
        return renamed(self.lines)

    def owners(self) -> dict[str, set[str]]:
        """Line id → the rules that cover it."""
        found: dict[str, set[str]] = {}
        for rule, evidence in self.mapped.rules.items():
            for id in (*evidence.sites, *evidence.mentioned):
                found.setdefault(id, set()).add(rule)
        return found

    def wanted(self) -> list[Line]:
        """The lines that are recorded: those that a rule covers, that need a decision, or that change an argument
        silently."""
        owned = self.owners()
        return [
            line for line in self.lines if line.id in owned or any(self._counts(site) for site in line.places.values())
        ]

    def _counts(self, site: Site) -> bool:
        return scoped(self.framework, site) or changes(self.framework, site)


def kept(framework: Framework, within: Sequence[str] | None, numbers: Iterable[int]) -> set[int]:
    """The numbers of the releases to which a rule is limited by hand; all if it is not limited. No last release: it
    also holds in those that are described later."""
    if not within:
        return set(numbers)
    first, last = (framework.placed(name) if name else None for name in within[:2])
    return {number for number in numbers if (first or 0.0) <= number and (last is None or number <= last)}


def checks(
    framework: Framework,
    repositories: Repositories,
    releases: Sequence[Release] = (),
    say: Say = print,
    known: Known | None = None,
) -> Checks:
    """Extract and follow the sites of these releases, by default of all followed ones; known: the sites of rules."""
    releases, known = releases or followed_releases(framework), known or Known()
    rules = all_rules()
    wanted, ids = places(rules, framework), {rule.id for rule in rules}
    named = frozenset(place.file for place in wanted if place.declared) | known.files
    found, names = [], []
    for release in releases:
        source = repositories.checkout(framework, release.revision)
        found.append([site for site in sites_of(framework, source, named) if live(release, site)])
        names.append(f"{sites_name(framework, source, named)} {release.live}")
        count = sum(scoped(framework, site) for site in found[-1])
        say(f"{framework.name} {release.name}: {count} checks on the way of a config")
    lines = followed(found, [known.ids.get(release.name, {}) for release in releases], names)
    ids -= known.without
    wanted = [place for place in wanted if place.rule not in known.without]
    stands = [{rule: sites for rule, sites in part.items() if rule in ids} for part in known.stands]
    return Checks(
        framework,
        releases,
        lines,
        mapped(wanted, lines, [release.name for release in releases], framework.read_at, stands, renamed(lines)),
    )


def renamed(lines: Iterable[Line]) -> dict[str, str]:
    """Former id → present id, for lines that have been merged."""
    return {id: line.id for line in lines for id in line.before if id != line.id}


def live(release: Release, site: Site) -> bool:
    """Whether a run of a release reaches a site."""
    return (
        not release.live or re.search(release.live, f"{site.file}:{site.function}") is not None or site.kind == "text"
    )


def tables(
    framework: Framework, repositories: Repositories, python: str, say: Say = print
) -> list[Mapping[str, Row | None]]:
    """The option table of each release; for one built on another, only the differences. Raises NoOptions if a parser
    does not run: the written table would then claim that the release has no options."""
    whole: dict[tuple[str, str], Table] = {}
    found: list[Mapping[str, Row | None]] = []
    for release in framework.releases:
        table = options(framework, repositories, release, python)
        for name, under in release.on[:1]:
            base = FRAMEWORKS[name]
            if (name, under) not in whole:
                whole[name, under] = options(base, repositories, base.release(under), python)
            found.append(delta(table, whole[name, under]))
            say(
                f"{framework.name} {release.name}: {len(table)} options, {len(found[-1])} otherwise than {name} {under}"
            )
        if not release.on:
            found.append(table)
            say(f"{framework.name} {release.name}: {len(table)} options or keys")
    return found


def blobs(framework: Framework, repositories: Repositories, files: Sequence[str]) -> dict[str, list[Any]]:
    """File → its abbreviated blob id at each release, null if it does not exist."""
    found: dict[str, list[Any]] = {}
    for number, release in enumerate(framework.releases):
        for path, blob in repositories.checkout(framework, release.revision).blobs(files).items():
            found.setdefault(path, [None] * len(framework.releases))[number] = blob
    return dict(sorted(found.items()))
