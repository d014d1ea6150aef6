"""How many of the frameworks' own checks the rules cover."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from preflight.rule import Checkable, Rule

NEAR = 2  # lines: a condition and its message rarely stand further apart
_PLACE = re.compile(r"([\w.-]+(?:/[\w.-]+)*\.py):(\d+)")


def coverage(rules: Iterable[Checkable], *, missing: bool = False) -> str:
    """Per framework: how many of the checks in its catalogue some rule stands for, and on request which none does."""
    rules = list(rules)
    owned = {place for rule in rules for place in mentioned(rule)}
    named = sum(bool(mentioned(rule)) for rule in rules)
    lines = [f"{named} of {len(rules)} rules name the upstream check they stand for."]
    for name, catalogue in sorted(catalogues().items()):
        checks = [(file, line) for file, numbers in catalogue["checks"].items() for line in numbers]
        left = [(file, line) for file, line in checks if not any((file, line + off) in owned for off in range(-NEAR, NEAR + 1))]
        if not checks:
            continue
        covered = len(checks) - len(left)
        lines.append(f"{name}: {covered} of {len(checks)} ({100 * covered // len(checks)} %)  {catalogue['source']}")
        lines += [f"  not covered: {file}:{line}" for file, line in left if missing]
    return "\n".join(lines) + "\n"


def upstream_places(rule: Checkable) -> tuple[str, ...]:
    """The checks of upstream that a rule says it owns, as "file:line"."""
    upstream: Any = getattr(rule, "upstream", ())
    if isinstance(upstream, str):
        upstream = (upstream,)
    also: tuple[str, ...] = getattr(rule, "also", ())
    return (*(upstream.values() if hasattr(upstream, "values") else upstream), *also)


def mentioned(rule: Checkable) -> set[tuple[str, int]]:
    """Every place upstream that a rule names: its own, and for a function those that its module's text names."""
    texts = list(upstream_places(rule))
    if isinstance(rule, Rule):
        texts.append(inspect.getsource(sys.modules[rule.function.__module__]))
    return {(match[1], int(match[2])) for text in texts for match in _PLACE.finditer(text)}


def catalogues() -> dict[str, dict[str, Any]]:
    """The catalogues of upstream's checks that ship under schemas/coverage, by name."""
    folder = files("preflight.schemas").joinpath("coverage")
    return {entry.name.removesuffix(".json"): json.loads(entry.read_text(encoding="utf-8")) for entry in folder.iterdir() if entry.name.endswith(".json")}
