"""Names for many rules: a framework, a topic. `--select` and `--ignore` take them beside ids and severities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from preflight.lint.rule import Checkable
from preflight.run.settings import Choice

TOPICS: Mapping[str, tuple[str, ...]] = {
    "memory": ("predicted-oom", "pool-beyond-device"),
    "shell": (
        "array-first-word",
        "assumed-arguments",
        "blank-after-backslash",
        "carriage-return",
        "launcher-*",
        "lost-*",
        "misspelt-variable",
        "msrun-launcher-*",
        "not-exported",
        "placeholder-value",
        "script-not-followed",
        "undefined-group",
        "unset-variable",
        "unused-group",
        "unused-size",
        "value-splits",
    ),
    "silent-change": (
        "changed-silently",
        "reset-silently",
        "*-ignored-key",
        "select-recompute-no-match",
        "*/*-ignored",
        "*/*-overwritten",
        "*/*-reset",
        "*/*-wins",
        "*/*-off",
    ),
}
"""Topic → patterns of rule ids."""


def grouped(rules: Iterable[Checkable]) -> dict[str, tuple[str, ...]]:
    """Group → the ids or patterns of its rules: the topics, and the frameworks that have rules of their own."""
    groups: dict[str, tuple[str, ...]] = {}
    for rule in rules:
        for name in rule.frameworks:
            groups[name] = (*groups.get(name, ()), rule.id)
    return {**groups, **TOPICS}


def expanded(choice: Choice, groups: Mapping[str, tuple[str, ...]]) -> Choice:
    """A choice with the rules of a group in place of its name."""

    def ids(patterns: Iterable[str]) -> tuple[str, ...]:
        return tuple(id for pattern in patterns for id in groups.get(pattern, (pattern,)))

    return choice._replace(select=ids(choice.select), ignore=ids(choice.ignore))
