"""How many of the frameworks' own checks the rules cover."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from preflight.rule import Checkable


def coverage(rules: Iterable[Checkable]) -> str:
    """Per framework: rules that name a check of upstream, and, where a catalogue ships, how many of its checks are named."""
    places = {rule.id: upstream_places(rule) for rule in rules}
    lines = [f"{sum(map(bool, places.values()))} of {len(places)} rules name the upstream check they stand for."]
    owned = {place.partition("@")[0] for found in places.values() for place in found}
    for name, catalogue in sorted(catalogues().items()):
        checks = [str(check) for check in catalogue["checks"]]
        covered = sum(check in owned for check in checks)
        lines.append(f"{name}: {covered} of {len(checks)} checks that a config can reach ({covered / max(len(checks), 1):.0%})")
    return "\n".join(lines) + "\n"


def upstream_places(rule: Checkable) -> tuple[str, ...]:
    """The checks of upstream that a rule owns, as "file:line"."""
    upstream: Any = getattr(rule, "upstream", ())
    if isinstance(upstream, str):
        return (upstream,)
    return tuple(upstream.values()) if hasattr(upstream, "values") else tuple(upstream)


def catalogues() -> dict[str, dict[str, Any]]:
    """The catalogues that ship under schemas/coverage, by name."""
    folder = files("preflight.schemas").joinpath("coverage")
    if not folder.is_dir():
        return {}
    return {entry.name.removesuffix(".json"): json.loads(entry.read_text(encoding="utf-8")) for entry in folder.iterdir() if entry.name.endswith(".json")}
