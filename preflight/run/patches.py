"""Patch releases: each is read as the release that it is a patch of, with the options and checks that differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from preflight import schemas
from preflight.run.request import Target
from preflight.run.versions import numbers


def patch(target: Target | None) -> Mapping[str, Any]:
    """What is described of a patch release: the release that it is read as in `of`, and the `options` that are other
    ones there; empty where it is none."""
    if target is None:
        return {}
    rows: dict[str, dict[str, dict[str, Any]]] = schemas.read("releases")["patches"]
    return rows.get(target.framework, {}).get(target.version, {})


def lacking(target: Target | None) -> frozenset[str]:
    """The rules whose checks a patch release does not have."""
    if target is None or not patch(target):
        return frozenset()
    if not schemas.exists(f"{target.framework}/published"):
        return frozenset()
    published: dict[str, Any] = schemas.read(f"{target.framework}/published")["published"]
    tags = (f"v{target.version}", f"core_v{target.version}")
    revision = patch(target).get("revision") or next((tag for tag in tags if tag in published), "")
    return frozenset(published.get(revision, {}).get("lacks", ()))


def described_around(asked: Target) -> tuple[str, str] | None:
    """The described releases just below and just above a release; None where it is older or newer than all."""
    releases: list[str] = schemas.read("releases").get(asked.framework, [])
    order = sorted(filter(numbers, releases), key=numbers)
    older = [release for release in order if numbers(release) < numbers(asked.version)]
    newer = [release for release in order if numbers(release) > numbers(asked.version)]
    return (older[-1], newer[0]) if older and newer else None
