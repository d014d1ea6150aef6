"""The releases before the first followed one that contain the checks of a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from upstream.described import checks, kept
from upstream.evidence import held, read_exactly
from upstream.frameworks import Framework
from upstream.known import known
from upstream.repositories import Repositories, followed_releases


def earlier(
    framework: Framework, repositories: Repositories, folder: Path, decided: Mapping[str, Any]
) -> dict[str, set[int]]:
    """Rule → the numbers of those releases: those in which its statements are unchanged, within the limits set by hand,
    or that a person read.

    Rules common to all frameworks apply as in the first followed release, and so does a rule of which
    nothing is found there when the earlier ones are followed, too. folder: what is written of it.
    """
    names = [release.name for release in framework.releases]
    first = names.index(followed_releases(framework)[0].name)
    if not first:
        return {}
    releases = tuple(
        one._replace(options_only=one.options_only and one.name not in framework.earlier) for one in framework.releases
    )
    human = known(folder, decided["stands"], decided["rules"])
    human = replace(human, ids={})  # a site has another id if it is followed from an earlier release on
    read = checks(replace(framework, releases=releases), repositories, known=human, say=lambda text: None)
    lines, found = read.by_id, dict[str, set[int]]()
    others = read_exactly(read.mapped.rules, lines, decided["same"])
    for rule, evidence in read.mapped.rules.items():
        numbers = {read.number(number) for number in held(evidence, lines, decided["same"], others)[0]}
        people = {names.index(name) for name in decided.get("older", {}).get(rule, ((),))[0]}
        as_first = (
            range(first) if "/" not in rule else map(names.index, framework.earlier if first not in numbers else ())
        )
        searched = {number for number in numbers if number < first} | set(as_first)
        found[rule] = kept(framework, decided["within"].get(rule), searched) | people
    return found
