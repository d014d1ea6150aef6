"""Which of many rules can have anything to say about a run, found by the arguments that the run touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.job import Job
from preflight.rule import Checkable


class Selection:
    """The rules for runs in which the same versions of the same frameworks take part.

    A rule's `triggers`, where it has them, are the arguments of which a run must touch one; None means every run.
    A rule's `concerns`, where it has it, tells whether it holds for the versions at all, and with `noticed` and `triggers`
    that is all there is to know; other rules are asked by `applies`.
    """

    def __init__(self, rules: Sequence[Checkable], versions: Mapping[str, str]) -> None:
        self._rules = [rule for rule in rules if not hasattr(rule, "concerns") or rule.concerns(versions)]
        self._always: list[int] = []
        self._triggered: dict[str, list[int]] = {}
        for number, rule in enumerate(self._rules):
            triggers = getattr(rule, "triggers", None)
            if triggers is None:
                self._always.append(number)
            for name in triggers or ():
                self._triggered.setdefault(name, []).append(number)

    def of(self, job: Job) -> list[Checkable]:
        """The rules that a run may break, in the order they were given."""
        wanted = set(self._always)
        for name in job.touched & self._triggered.keys():
            wanted.update(self._triggered[name])
        found = (self._rules[number] for number in sorted(wanted))
        return [rule for rule in found if not getattr(rule, "noticed", False) or rule.id in job.noticed_kinds]
