"""The documents written for a framework: releases, options, evidence, the releases in which each rule holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from preflight.program.checkout.guarded_statements import Site
from upstream.behaviour import Behaviour
from upstream.compact import Inline
from upstream.described import Checks, kept
from upstream.evidence import Evidence, carried, held, read_exactly
from upstream.follow import Line
from upstream.frameworks import Framework
from upstream.options import FIELDS, Row, intervals
from upstream.repositories import Repositories

TEXT = "text"
"""A line of documentation: if it is reworded or moved, the framework itself does not change."""
Document = dict[str, Any]
Same = Mapping[str, Sequence[str]]


def head(framework: Framework, repositories: Repositories) -> Document:
    """The header of each file: its sources, and the command that writes it."""
    commits = {
        release.name: repositories.checkout(framework, release.revision).commit.removeprefix("sha256:")[:10]
        for release in framework.releases
    }
    command = f"python -m upstream write {framework.name}"
    return {
        "framework": framework.name,
        "repository": framework.repository,
        "command": command,
        "commits": Inline(commits),
    }


def releases_document(framework: Framework, repositories: Repositories, blobs: Mapping[str, list[Any]]) -> Document:
    """Every release in order, with what it is built on, and the git object of each file on the path from a config to a
    run."""
    rows = {}
    for release in framework.releases:
        source = repositories.checkout(framework, release.revision)
        row: Document = {"revision": release.revision, "commit": source.commit, "date": source.date}
        row |= {"on": dict(release.on)} if release.on else {}
        row |= {"also": list(release.also)} if release.also else {}
        rows[release.name] = row | ({} if release.options_only else {"checks": True})
    return {**head(framework, repositories), "releases": rows, "files": dict(blobs)}


def options_document(
    framework: Framework, repositories: Repositories, tables: Sequence[Mapping[str, Row | None]]
) -> Document:
    """Every option with the first and last release, by number, of each of its forms."""
    on = {release.name: dict(release.on[:1]) for release in framework.releases if release.on}
    built = {"on": Inline(on)} if on else {}
    return {**head(framework, repositories), **built, "fields": list(FIELDS), "options": intervals(tables)}


def evidence_document(checks: Checks, repositories: Repositories, same: Same) -> Document:
    """The sites, in ranges of releases with the same file, function and condition, and the sites that each rule
    covers."""
    wanted = checks.wanted()
    files = sorted({site.file for line in wanted for site in line.places.values()})
    functions = sorted({site.function for line in wanted for site in line.places.values()})
    numbers = (
        {name: number for number, name in enumerate(files)},
        {name: number for number, name in enumerate(functions)},
    )
    sites = {
        line.id: [line.last.kind, _runs(line, *numbers, checks.number), *_assigned(line)]
        for line in sorted(wanted, key=_order)
    }
    rules = {rule: [_read(checks, found), sorted(found.mentioned)] for rule, found in checks.mapped.rules.items()}
    return {
        **head(checks.framework, repositories),
        "files": files,
        "functions": functions,
        "sites": sites,
        "rules": rules,
    }


def _read(checks: Checks, found: Evidence) -> dict[str, list[str]]:
    """Site → the releases at which it was read for a rule."""
    return {id: [checks.releases[number].name for number in sorted(found.anchors[id])] for id in found.sites}


def _assigned(line: Line) -> list[str]:
    """The argument changed by a silent change."""
    return [line.last.what.partition(" ")[0].strip("'\"")] if line.last.kind == "assign" else []


def _order(line: Line) -> tuple[str, int, str]:
    return line.last.file, line.last.line, line.id


def _runs(
    line: Line, files: Mapping[str, int], functions: Mapping[str, int], number_of: Callable[[int], int]
) -> list[list[Any]]:
    """[file, function, hash, first release, lines]: one range in which only the line number changes."""
    runs: list[list[Any]] = []
    before: tuple[int, Site] | None = None
    for number, site in sorted(line.places.items()):
        alike = before is not None and before[0] == number - 1 and _stands(before[1]) == _stands(site)
        if alike:
            runs[-1][4].append(site.line)
        else:
            runs.append([files[site.file], functions[site.function], site.hash, number_of(number), [site.line]])
        before = number, site
    return runs


def _stands(site: Site) -> tuple[str, str, str]:
    return site.file, site.function, site.hash


def holds_document(
    checks: Checks,
    repositories: Repositories,
    decided: Mapping[str, Any],
    told: Behaviour | None = None,
    before: Mapping[str, Iterable[int]] = MappingProxyType({}),
) -> Document:
    """Rule → the releases, as first and last, in which its examples are refused, or its statements are unchanged since
    they were read.

    decided: the human decisions. told: the verdicts of the programs. before: rule → releases before the first whose
    checks are followed, for rules that hold in that first one.
    """
    lines, same, within = checks.by_id, decided["same"], decided["within"]
    others = read_exactly(checks.mapped.rules, lines, same)
    covers: dict[str, list[str]] = dict(decided["covers"])
    sure: Document = {}
    for rule, evidence in checks.mapped.rules.items():
        if all(lines[id].last.kind == TEXT for id in evidence.sites):
            continue
        certain, _ = held(evidence, lines, same, others)
        by = carried(evidence, lines, others, certain) if rule not in within else set()
        numbers = {*map(checks.number, certain), *_refusing(checks, rule, told)}
        numbers = kept(checks.framework, within.get(rule), numbers)
        sure[rule] = spans({*numbers, *(before.get(rule, ()) if checks.number(0) in numbers else ())})
        covers |= {rule: sorted({*covers.get(rule, ()), *by})} if by else {}
    return {
        **head(checks.framework, repositories),
        "decides": checks.framework.decides,
        "checked": checks.number(0),
        "holds": sure,
        **({"covers": covers} if covers else {}),
    }


def _refusing(checks: Checks, rule: str, told: Behaviour | None) -> set[int]:
    """The releases whose programs refuse a rule's examples, except those from which it is excluded."""
    names = [release.name for release in checks.framework.releases]
    return {number for number, name in enumerate(names) if told is not None and told.holds(rule, name)}


def spans(numbers: Iterable[int]) -> list[list[int]]:
    """1, 2, 3, 7 → [[1, 3], [7, 7]]"""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
