"""Which described release a checkout is, by the content of its files,
as schemas/<framework>/releases.json lists them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from preflight.program.checkout.files import Files
from preflight.run.versions import numbers
from preflight.source.record import NamedTuple

try:  # hashlib loads OpenSSL first, which takes longer than to read a config
    from _sha1 import sha1  # type: ignore[import-not-found]
except ImportError:
    from hashlib import sha1

DIGITS = 12


class Likeness(NamedTuple):
    """same: how many of the files that are known are those of each release, oldest first. whole: releases that it has
    all files of. partial: releases that it lacks files of, and none of whose files differ. tag: a further published
    state of a release that it has all files of, "" for none. of: how many files of each release are known."""

    same: Mapping[str, int]
    whole: tuple[str, ...]
    partial: tuple[str, ...]
    tag: str = ""
    of: Mapping[str, int] = MappingProxyType({})


@cache
def _listed(framework: str) -> dict[str, Any]:
    folder = Path(str(import_module("preflight.schemas").__file__)).parent / framework
    data: dict[str, Any] = json.loads((folder / "releases.json").read_text(encoding="utf-8"))
    return data


@cache
def published(framework: str) -> Mapping[str, Any]:
    """Tag or branch → the release that it is read as, its files that differ from that one's, and the rules of that
    one whose checks it lacks."""
    path = Path(str(import_module("preflight.schemas").__file__)).parent / framework / "published.json"
    if not path.is_file():
        return {}
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["published"]
    return data


def known_releases(framework: str) -> tuple[str, ...]:
    """The releases of a framework that have numbers, oldest first."""
    return tuple(name for name in _listed(framework)["releases"] if numbers(name))


def built_on(framework: str, release: str) -> Mapping[str, str]:
    """The releases of other frameworks that one is built on."""
    on: Mapping[str, str] = _listed(framework)["releases"].get(release, {}).get("on", {})
    return on


def likeness(framework: str, files: Files) -> Likeness:
    """How like each release the files of a checkout are."""
    names = tuple(_listed(framework)["releases"])
    same, of, other = dict.fromkeys(names, 0), dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    found: dict[str, str | None] = {}
    for path, objects in _listed(framework)["files"].items():
        text = files.text(path)
        here = found[path] = object_of(text) if text is not None else None
        for name, there in zip(names, objects, strict=True):
            of[name] += there is not None
            same[name] += there is not None and there == here
            other[name] += here is not None and there != here
    whole = tuple(name for name in names if 0 < of[name] == same[name])
    partial = tuple(name for name in names if not other[name] and same[name] < of[name])
    return Likeness(same, whole, partial, "" if whole else _tag(framework, found), of)


def _tag(framework: str, found: Mapping[str, str | None]) -> str:
    """The tag whose files lie here, "" where they are those of none."""
    listed = _listed(framework)
    order = list(listed["releases"])
    for tag, row in published(framework).items():
        at = order.index(row["release"])
        wanted = {path: objects[at] for path, objects in listed["files"].items()} | row["files"]
        if all(here == wanted[path] for path, here in found.items() if here is not None or wanted[path] is not None):
            return str(tag)
    return ""


def object_of(text: str) -> str:
    """The first digits of the name that git gives a text."""
    data = text.encode("utf-8")
    return str(sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()[:DIGITS])


def nearest(framework: str, said: str, like: Likeness) -> str:
    """The described release that a checkout is most like; "" where nothing tells.

    The one that it names, else the one with most of its files, else the newest before the one that it names.
    """
    releases, wanted = known_releases(framework), numbers(said)
    same = [name for name in releases if wanted and numbers(name)[:2] == wanted[:2]]
    if same:
        return same[0]
    best = max(like.same[name] for name in releases)
    if best:
        return next(name for name in reversed(releases) if like.same[name] == best)
    older = [name for name in releases if wanted and numbers(name) <= wanted]
    return older[-1] if older else releases[0] if wanted else ""
