"""The upstream places that each rule declares or mentions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from preflight.frontends.supported_front_ends import FRONT_ENDS
from preflight.report.upstream_check_coverage import parts
from upstream.frameworks import FRAMEWORKS, Framework

PLACE = re.compile(r"([\w.-]+(?:/[\w.-]+)*\.(?:py|md)):(\d+)")
PROGRAMS = frozenset(one.name for one in FRONT_ENDS)
"""The prefixes of the ids of rules for programs that start a framework."""
OLDER = re.compile(r"^<")
"""A range of releases with an end: its places belong to the last release in it at which rules are read."""


class Place(NamedTuple):
    """An upstream line that a rule names.

    release: the one at which it was read, "" if the rule does not state it. declared: it is not only mentioned in its
    text.
    """

    rule: str
    file: str
    line: int
    release: str
    declared: bool


def places(rules: tuple[Any, ...], framework: Framework) -> list[Place]:
    """The places that rules name in one framework's repository, each once, without those in releases whose checks are
    not followed. The rules of a program that starts the framework name lines of its underlying release, which is not
    one of those that are read: they hold by their own contracts."""
    unread = {release.name for release in framework.releases if release.options_only}
    found: dict[tuple[str, str, int, str], Place] = {}
    for rule in rules:
        if rule.id.partition("/")[0] in PROGRAMS:
            continue
        for file, line, key, declared in _named(rule):
            if _of(framework, file, getattr(rule, "framework", "") or next(iter(rule.frameworks), "")):
                place = Place(rule.id, file, line, _release(framework, key, getattr(rule, "versions", "")), declared)
                if place.release not in unread:
                    found.setdefault((rule.id, file, line, place.release), place)
    read = {(place.rule, place.file, place.line) for place in found.values() if place.release}
    return [place for place in found.values() if place.release or (place.rule, place.file, place.line) not in read]


def _of(framework: Framework, file: str, rules_of: str) -> bool:
    """Whether a file belongs to a framework's repository; pages of documentation belong to the rule's own framework."""
    if file.endswith(".md"):
        return bool(framework.docs) and rules_of == framework.name
    return any(file == root or file.startswith(root.partition("/")[0] + "/") for root in framework.roots)


def _release(framework: Framework, key: str, versions: str) -> str:
    """The release to which a place belongs, from the key under which the rule lists it."""
    name, _, release = key.rpartition("@")
    names = {one.name for one in framework.releases}
    if release in names and name in ("", framework.name):
        return release
    if OLDER.match(versions) and len(framework.read_at) > 1:
        return framework.read_at[-1]
    return ""


def _named(rule: Any) -> Iterator[tuple[str, int, str, bool]]:
    """File, line, key and whether it is declared, for each place in a rule's declarations and in the text of a rule
    function's module."""
    for key, text in [*_texts(getattr(rule, "upstream", ())), *_texts(getattr(rule, "also", ()))]:
        yield from ((match[1], int(match[2]), key, True) for match in PLACE.finditer(text))
    if (function := getattr(rule, "function", None)) is not None:
        module = sys.modules[function.__module__]
        for name, value in (parts(rule) if rule.paged else vars(module)).items():
            if name.isupper():
                yield from (
                    (match[1], int(match[2]), key, True)
                    for key, text in _texts(value)
                    for match in PLACE.finditer(text)
                )
        yield from ((match[1], int(match[2]), "", False) for match in PLACE.finditer(rule.page))


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, name if isinstance(name, str) else key)
    elif isinstance(value, (tuple, list, set, frozenset)):
        for inner in value:
            yield from _texts(inner, key)


def all_rules() -> tuple[Any, ...]:
    """All rules of preflight's own plugins."""
    from preflight.plugins.manager import load

    return load().rules(None)


def frameworks_named(name: str) -> Framework:
    """A framework by its name. Raises KeyError."""
    return FRAMEWORKS[name]
