"""Every rule that plugins registered, and those of them that a run needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from preflight.job import Job
from preflight.lint.rule import Checkable, RulePack

MOST = 256  # runs whose rules are kept in mind


class RuleTableError(Exception):
    """Two rules have one id, or there is no rule at all."""


class Selection:
    """The rules for runs in which the same versions of the same frameworks take part."""

    def __init__(self, rules: Sequence[Checkable], versions: Mapping[str, str]) -> None:
        self._rules = [rule for rule in rules if rule.concerns(versions)]
        self._noticed = {number for number, rule in enumerate(self._rules) if rule.noticed}
        self._always: list[int] = []
        self._kept: dict[frozenset[str], list[int]] = {}
        self._triggered: dict[str, list[int]] = {}
        for number, rule in enumerate(self._rules):
            if rule.triggers is None:
                self._always.append(number)
            for name in rule.triggers or ():
                self._triggered.setdefault(name, []).append(number)

    def of(self, job: Job) -> list[Checkable]:
        """The rules that a run may break, in the order they were given."""
        wanted = self._kept.get(job.touched)
        if wanted is None:
            found = set(self._always)
            for name in job.touched & self._triggered.keys():
                found.update(self._triggered[name])
            wanted = sorted(found)
            if len(self._kept) < MOST:
                self._kept[job.touched] = wanted
        noticed, rules = self._noticed, self._rules
        return [rules[number] for number in wanted if number not in noticed or rules[number].id in job.noticed_kinds]


def may_break(job: Job, rule: Checkable) -> bool:
    """Whether a rule may have anything to say about a run, as a selection of it alone would find."""
    return bool(Selection((rule,), job.versions).of(job))


class RuleTable:
    """Rules by pack: a pack loads with the first run that one of its frameworks takes part in."""

    def __init__(self, registered: Iterable[Checkable | RulePack]) -> None:
        self._packs = [item if isinstance(item, RulePack) else _pack(item) for item in registered]
        self._rules: dict[tuple[str, ...], tuple[Checkable, ...]] = {}
        self._selections: dict[tuple[tuple[str, str], ...], Selection] = {}

    def rules(self, frameworks: Iterable[str] | None = None) -> tuple[Checkable, ...]:
        """Rules for runs in which these frameworks take part, as cheap to load as may be; None: every rule,
        loaded whole.

        They are sorted by id. Raises RuleTableError.
        """
        key = ("*",) if frameworks is None else tuple(sorted(frameworks))
        if key not in self._rules:
            wanted = [
                p
                for p in self._packs
                if frameworks is None or not p.frameworks or not set(p.frameworks).isdisjoint(key)
            ]
            loads = [pack.load if frameworks is None else pack.deferred or pack.load for pack in wanted]
            self._rules[key] = _sorted([rule for load in loads for rule in load()])
        return self._rules[key]

    def selection(self, versions: Mapping[str, str]) -> Selection:
        """The rules for runs in which these versions of frameworks take part. Raises RuleTableError."""
        key = tuple(versions.items())
        if key not in self._selections:
            self._selections[key] = Selection(self.rules(versions), versions)
        return self._selections[key]


def _pack(rule: Checkable) -> RulePack:
    return RulePack((), lambda: (rule,))


def _sorted(rules: Sequence[Checkable]) -> tuple[Checkable, ...]:
    seen: dict[str, Checkable] = {}
    for rule in rules:
        if rule.id in seen:
            raise RuleTableError(f"two rules are called {rule.id!r}")
        seen[rule.id] = rule
    if not rules:
        raise RuleTableError("no rules are loaded; is preflight installed (its rules come in by an entry point)?")
    return tuple(seen[id] for id in sorted(seen))
