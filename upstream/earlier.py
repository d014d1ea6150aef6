"""In which releases before the first whose checks are followed the checks of a rule stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from upstream.described import Checks
from upstream.extraction import sites_of
from upstream.repositories import Repositories


def earlier(checks: Checks, repositories: Repositories, decided: Mapping[str, Any]) -> dict[str, set[int]]:
    """Rule → the numbers of those releases: in which one of its statements stands as it was read, or that somebody
    read. What every framework has in common holds as in the first whose checks are followed."""
    framework, first = checks.framework, checks.number(0)
    names = [release.name for release in framework.releases]
    lines = checks.by_id
    found = {
        rule: set(range(first))
        for rule, evidence in checks.mapped.rules.items()
        if "/" not in rule and any(0 in lines[id].places for id in evidence.sites)
    }
    named = frozenset(site.file for line in checks.lines for site in line.places.values() if site.kind == "statement")
    read = {
        rule: {hash for hashes in evidence.sites.values() for hash in hashes}
        for rule, evidence in checks.mapped.rules.items()
    }
    for name in framework.earlier:
        standing = {site.hash for site in sites_of(framework, repositories.checkout(framework, name), named)}
        for rule, hashes in read.items():
            if hashes & standing or name in decided.get("older", {}).get(rule, ((),))[0]:
                found.setdefault(rule, set()).add(names.index(name))
    return found
