"""Compares two releases: added, changed and removed options and checks, with the affected rules."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from preflight.program.checkout.guarded_statements import Site
from upstream.compact import short
from upstream.extraction import changes, scoped, sites_of
from upstream.follow import Line, followed
from upstream.frameworks import Framework, Release
from upstream.options import FIELDS, Row, Table, options
from upstream.repositories import Repositories

Owners = Mapping[str, Sequence[str]]


def diff(
    framework: Framework, repositories: Repositories, names: tuple[str, str], python: str, evidence: Path
) -> Iterator[str]:
    """The differences between two releases or revisions, one per line."""
    pair = [_release(framework, name) for name in names]
    old, new = (options(framework, repositories, release, python) for release in pair)
    yield f"{framework.name} {names[0]} to {names[1]}: {len(old)} and {len(new)} options"
    yield from option_lines(old, new)
    sites = [sites_of(framework, repositories.checkout(framework, release.revision)) for release in pair]
    owners = owners_of(evidence)
    lines = followed(sites)
    yield from check_lines(
        [line for line in lines if _counts(line, lambda site: scoped(framework, site))], "check", owners
    )
    yield from check_lines(
        [line for line in lines if _counts(line, lambda site: changes(framework, site))], "change", owners
    )


def _release(framework: Framework, name: str) -> Release:
    """A release by name, or a revision, with the base of the newest release."""
    try:
        return framework.release(name)
    except KeyError:
        return framework.releases[-1]._replace(name=name, revision=name)


def _counts(line: Line, wanted: Callable[[Site], bool]) -> bool:
    return any(wanted(site) for site in line.places.values())


def option_lines(old: Table, new: Table) -> Iterator[str]:
    """Added, removed and changed options."""
    for name in sorted(new.keys() - old.keys()):
        yield f"option new: {name} {_shown(new[name])}"
    for name in sorted(old.keys() - new.keys()):
        yield f"option gone: {name}"
    for name in sorted(old.keys() & new.keys()):
        if old[name] != new[name]:
            fields = [
                field
                for field, one, other in zip(FIELDS, _whole(old[name]), _whole(new[name]), strict=True)
                if one != other
            ]
            said = ", ".join(
                f"{field} {short(_whole(old[name])[_at(field)])} to {short(_whole(new[name])[_at(field)])}"
                for field in fields
            )
            yield f"option changed: {name}: {said}"


def _at(field: str) -> int:
    return FIELDS.index(field)


def _whole(row: Row) -> Row:
    return [*row, *[None] * (len(FIELDS) - len(row))]


def _shown(row: Row) -> str:
    return ", ".join(f"{field} {short(value)}" for field, value in zip(FIELDS, row, strict=False) if value is not None)


def check_lines(lines: Sequence[Line], what: str, owners: Owners) -> Iterator[str]:
    """Added, removed and reworded sites, with their rules."""
    for line in lines:
        old, new = line.places.get(0), line.places.get(1)
        if old is None and new is not None:
            yield f"{what} new: {_place(new)}: {new.shown}"
        elif new is None and old is not None:
            yield f"{what} gone: {_place(old)}: {old.shown}{_rules(owners, old)}"
        elif old is not None and new is not None and old.hash != new.hash:
            yield f"{what} changed: {_place(old)} to {_place(new)}{_rules(owners, old, new)}"
            yield f"  - {' and '.join(sorted(old.condition - new.condition)) or '(nothing)'}{_content(old, new)}"
            yield f"  + {' and '.join(sorted(new.condition - old.condition)) or '(nothing)'}{_content(new, old)}"


def _content(site: Site, other: Site) -> str:
    return f": {site.what}" if site.what != other.what else ""


def _place(site: Site) -> str:
    return f"{site.file}:{site.line} {site.function}"


def _rules(owners: Owners, *sites: Site) -> str:
    rules = sorted({rule for site in sites for rule in owners.get(site.hash, ())})
    return f" [{', '.join(rules)}]" if rules else ""


def owners_of(evidence: Path) -> Owners:
    """Hash of a site → its rules, from the written evidence."""
    if not evidence.is_file():
        return {}
    data: dict[str, Any] = json.loads(evidence.read_text(encoding="utf-8"))
    hashes = {id: {run[2] for run in entry[1]} for id, entry in data["sites"].items()}
    found: dict[str, list[str]] = defaultdict(list)
    for rule, (sites, mentioned) in data["rules"].items():
        for hash in {hash for id in (*sites, *mentioned) for hash in hashes.get(id, ())}:
            found[hash].append(rule)
    return found
