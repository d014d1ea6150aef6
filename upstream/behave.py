"""Compares the verdicts of releases on the rules' examples with the releases in which the rules hold according to
holds.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from upstream.behaviour import Behaviour, behaviour
from upstream.beside import beside
from upstream.frameworks import Framework
from upstream.read_statements import ReadStatements
from upstream.repositories import Repositories

WORDS = {True: "refuses", False: "does not refuse", None: "says nothing of"}


def behave(
    framework: Framework, repositories: Repositories, folder: Path, tags: Sequence[str], verdicts: bool = False
) -> Iterator[str]:
    """A line for each release, and one for each rule on which its program and holds.json disagree.

    tags: releases, tags, branches or commits; all releases by default. verdicts: also list each example on which
    preflight's verdict differs.
    """
    wanted = list(tags) or [release.name for release in framework.releases]
    held = json.loads((folder / "holds.json").read_text(encoding="utf-8"))
    told = behaviour(framework, repositories, ReadStatements.of(folder), wanted)
    for name in wanted:
        yield from _release(told, name, _held(held, name))
        if verdicts and name in held["commits"]:
            yield from beside(told, framework.name, name)


def _held(held: Mapping[str, Any], name: str) -> Mapping[str, bool]:
    """Rule → whether it holds in a release according to holds.json; empty for an undescribed release."""
    if name not in held["commits"]:
        return {}
    number = list(held["commits"]).index(name)
    return {rule: any(first <= number <= last for first, last in spans) for rule, spans in held["holds"].items()}


def _release(told: Behaviour, name: str, held: Mapping[str, bool]) -> Iterator[str]:
    answers = {rule: told.holds(rule, name) for rule in told.seen}
    counts = ", ".join(f"{WORDS[word]} {list(answers.values()).count(word)}" for word in WORDS)
    agreeing = sum(held.get(rule) == answer for rule, answer in answers.items() if answer is not None)
    written = f"; {agreeing} of {len(answers) - list(answers.values()).count(None)} as written" if held else ""
    yield f"{name}: {counts}{written}"
    for rule, answer in sorted(answers.items()):
        if held and answer is not None and held.get(rule) != answer:
            yield f"  {rule} {'holds' if held.get(rule) else 'does not hold'}, the program {WORDS[answer]} its examples"
            yield from _why(told, rule, name)
    for rule, refusals in sorted(told.unread(name).items()):
        places = ", ".join(sorted({f"{one.place} {one.says[:60]}".rstrip() for one in refusals}))
        yield f"  {rule} at no statement that was read: {places}"


def _why(told: Behaviour, rule: str, name: str) -> Iterator[str]:
    lines = {}
    for one in told.seen[rule][name]:
        if one.refuses is not None:
            owners = " ".join(sorted(told.read.owners(one.told.statement))) or "no rule"
            lines[one.refuses, one.told.place] = f"    {one.told.place or 'accepted'} {one.told.says[:80]} [{owners}]"
    yield from lines.values()
