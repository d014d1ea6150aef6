"""Which of many rules can have anything to say about a run, found by the arguments that the run touches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from preflight.job import Job
from preflight.rule import Checkable

MOST = 256  # runs whose rules are kept in mind
Silent = Callable[[Job], bool]


class Selection:
    """The rules for runs in which the same versions of the same frameworks take part.

    A rule's `triggers`, where it has them, are the arguments of which a run must touch one; None means every run.
    A rule's `concerns`, where it has it, tells whether it holds for the versions at all, and with `noticed` and `triggers`
    that is all there is to know; other rules are asked by `applies`. A rule's `silent`, where it has it, tells from its condition
    alone that it has nothing to say about a run that it concerns.
    """

    def __init__(self, rules: Sequence[Checkable], versions: Mapping[str, str]) -> None:
        self._rules = [rule for rule in rules if not hasattr(rule, "concerns") or rule.concerns(versions)]
        self._asked = [(rule, _early(rule)) for rule in self._rules]
        self._noticed = {number for number, rule in enumerate(self._rules) if getattr(rule, "noticed", False)}
        self._always: list[int] = []
        self._kept: dict[frozenset[str], list[int]] = {}
        self._triggered: dict[str, list[int]] = {}
        for number, rule in enumerate(self._rules):
            triggers = getattr(rule, "triggers", None)
            if triggers is None:
                self._always.append(number)
            for name in triggers or ():
                self._triggered.setdefault(name, []).append(number)

    def of(self, job: Job) -> list[tuple[Checkable, Silent | None]]:
        """The rules that a run may break, in the order they were given, with what tells early that one has nothing to say."""
        wanted = self._kept.get(job.touched)
        if wanted is None:
            found = set(self._always)
            for name in job.touched & self._triggered.keys():
                found.update(self._triggered[name])
            wanted = sorted(found)
            if len(self._kept) < MOST:
                self._kept[job.touched] = wanted
        return [self._asked[number] for number in wanted if number not in self._noticed or self._rules[number].id in job.noticed_kinds]


def _early(rule: Checkable) -> Silent | None:
    if hasattr(rule, "concerns"):
        return getattr(rule, "silent", None)
    return lambda job: not rule.applies(job)
