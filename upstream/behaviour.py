"""Determines the releases in which each declared check holds, from the verdicts of their programs on the check's
examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from os import cpu_count
from typing import NamedTuple

from upstream.checkout import Checkout
from upstream.examples import Example, Run, examples
from upstream.frameworks import Framework
from upstream.judged import ACCEPTS, REFUSES, Asked, Judge, Told
from upstream.read_statements import ReadStatements
from upstream.repositories import Repositories

Say = Callable[[str], None]
Answers = Mapping[Run, Told]


class Seen(NamedTuple):
    """The verdict of a release on one example of a rule.

    refuses: None if there is no answer: the release lacks an option, refuses the neighbour at the same place, or is
    undecided. told: the verdict on the side that the rule refuses.
    """

    example: Example
    refuses: bool | None
    told: Told


@dataclass
class Behaviour:
    """Rule → release → its verdicts on the examples that are refused at the rule's statement in the release in which it
    was read.

    words: rule → the message there, without its numbers.
    """

    read: ReadStatements
    releases: Sequence[str]
    seen: dict[str, dict[str, list[Seen]]] = field(default_factory=dict)
    words: dict[str, set[str]] = field(default_factory=dict)

    def holds(self, rule: str, release: str) -> bool | None:
        """Whether a release refuses what a rule refuses: True if it refuses each example that it decides, False if it
        accepts each; None if it decides none, or if only statements of other rules refuse."""
        found = self.seen.get(rule, {}).get(release, ())
        accepted = any(one.refuses is False for one in found)
        refused = any(one.refuses and self.mine(rule, one.told) for one in found)
        return refused if refused != accepted else None

    def answers(self, rule: str, release: str) -> bool:
        """Whether a release decides a rule's examples, possibly at statements of other rules."""
        return any(one.refuses is not None for one in self.seen.get(rule, {}).get(release, ()))

    def mine(self, rule: str, told: Told) -> bool:
        """Whether a refusal counts for a rule: it is at a statement that the rule covers, or at one that no rule covers
        and whose message is the same as where the rule was read."""
        owners = self.read.owners(told.statement)
        return rule in owners or (not owners and _wording(told) in self.words.get(rule, ()))

    def unread(self, release: str) -> dict[str, list[Told]]:
        """Rule → refusals of its examples at statements from which no rule was written."""
        found: dict[str, list[Told]] = {}
        for rule, by_release in self.seen.items():
            for one in by_release.get(release, ()):
                if one.refuses and not self.read.owners(one.told.statement) and not self.mine(rule, one.told):
                    found.setdefault(rule, []).append(one.told)
        return found


def behaviour(
    framework: Framework,
    repositories: Repositories,
    read: ReadStatements,
    releases: Sequence[str],
    say: Say = print,
) -> Behaviour:
    """Interpret the examples of every declared check in these releases, tags, branches or commits."""
    every = examples(framework)
    wanted: dict[str, list[Asked]] = {}
    for one in every:
        wanted.setdefault(one.home, []).append(Asked(one.refused))
    answers = _asked(framework, repositories, wanted)
    reached = [one for one in every if _at_its_own(read, one, answers[one.home][one.refused])]
    rules = {one.rule for one in reached}
    say(
        f"{framework.name}: {len(reached)} of {len(every)} examples, of {len(rules)} rules, are refused where they "
        "were read"
    )
    found = Behaviour(read, tuple(releases))
    for one in reached:
        found.words.setdefault(one.rule, set()).add(_wording(answers[one.home][one.refused]))
    _in_each(framework, repositories, found, reached)
    return found


def _at_its_own(read: ReadStatements, example: Example, told: Told) -> bool:
    """Whether an example is refused at a statement of its rule."""
    return told.outcome == REFUSES and told.statement in read.anywhere.get(example.rule, ())


def _in_each(framework: Framework, repositories: Repositories, found: Behaviour, reached: Sequence[Example]) -> None:
    asked = [Asked(one.refused, *_apart(found.read.anywhere[one.rule])) for one in reached]
    refused = _asked(framework, repositories, dict.fromkeys(found.releases, asked))
    doubted = {
        name: [Asked(one.accepted) for one in reached if _another(found.read, one, refused[name][one.refused])]
        for name in found.releases
    }
    accepted = _asked(framework, repositories, doubted)
    for name in found.releases:
        for one in reached:
            told = refused[name][one.refused]
            beside = accepted[name].get(one.accepted) if _another(found.read, one, told) else None
            found.seen.setdefault(one.rule, {}).setdefault(name, []).append(Seen(one, _refuses(told, beside), told))


def _another(read: ReadStatements, example: Example, told: Told) -> bool:
    """Whether a run is refused at a statement that differs from those from which its rule was written."""
    return told.outcome == REFUSES and told.statement not in read.as_read.get(example.rule, ())


def _refuses(told: Told, beside: Told | None) -> bool | None:
    """The verdict of a release on an example, from both of its sides. beside: the verdict on its neighbour, if
    relevant."""
    if told.outcome not in (REFUSES, ACCEPTS):
        return None
    alike = beside is not None and (
        beside.outcome not in (REFUSES, ACCEPTS) or told.place in (beside.place, *beside.also)
    )
    return None if alike else told.outcome == REFUSES


def _wording(told: Told) -> str:
    return re.sub(r"\d+", "#", told.says)


def _apart(statements: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Hashes of statements, and functions."""
    known = sorted(statements)
    return tuple(one for one in known if ":" not in one), tuple(one for one in known if ":" in one)


def _asked(
    framework: Framework, repositories: Repositories, wanted: Mapping[str, Iterable[Asked]]
) -> dict[str, dict[Run, Told]]:
    """Judge the runs of each release, with one process per processor."""
    rows = [(framework, repositories.checkout(framework, name), list(asked)) for name, asked in wanted.items()]
    with ProcessPoolExecutor(cpu_count()) as pool:
        return dict(zip(wanted, pool.map(_judged, rows), strict=True))


def _judged(row: tuple[Framework, Checkout, list[Asked]]) -> dict[Run, Told]:
    framework, source, asked = row
    return Judge(framework, source)(asked)
