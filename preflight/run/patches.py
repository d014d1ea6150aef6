"""Patch releases: each is read as the release that it patches, with different options and checks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from preflight import schemas
from preflight.run.request import Target
from preflight.run.versions import branch
from preflight.source.hints import Any


def patch(target: Target | None) -> Mapping[str, Any]:
    """The description of a patch release: `of`, the release that it is read as, and `options` that differ; empty for
    other releases."""
    if target is None:
        return {}
    rows: dict[str, dict[str, dict[str, Any]]] = schemas.read("releases")["patches"]
    return rows.get(target.framework, {}).get(target.version, {})


def lacking(target: Target | None) -> frozenset[str]:
    """The rules whose checks a patch release lacks."""
    return _rules(target, "lacks")


@cache
def gained(framework: str, version: str) -> frozenset[str]:
    """The rules whose checks a patch release has in addition to its release."""
    return _rules(Target(framework, version), "has")


def _rules(target: Target | None, part: str) -> frozenset[str]:
    if target is None or not patch(target):
        return frozenset()
    if not schemas.exists(f"{target.framework}/published"):
        return frozenset()
    published: dict[str, Any] = schemas.read(f"{target.framework}/published")["published"]
    tags = (f"v{target.version}", f"core_v{target.version}")
    revision = patch(target).get("revision") or next((tag for tag in tags if tag in published), "")
    return frozenset(published.get(revision, {}).get(part, ()))


def described_around(asked: Target) -> tuple[str, str]:
    """The described releases of its line just below and just above a release; "" where it is older or newer than
    all."""
    table = schemas.read("releases")
    releases: list[str] = [*table.get(asked.framework, ()), *table.get(f"{asked.framework} branches", ())]
    line, wanted = branch(asked.version)
    order = sorted((number, one) for one in releases for own, number in [branch(one)] if own == line and number)
    older = [one for number, one in order if number < wanted]
    newer = [one for number, one in order if number > wanted]
    return older[-1] if older else "", newer[0] if newer else ""
