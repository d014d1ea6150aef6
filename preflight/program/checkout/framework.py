"""A framework in a checkout: its release, whether it is unchanged, its additional options and checks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from types import MappingProxyType

from preflight import schemas
from preflight.lint.upstream_evidence import REFUSALS
from preflight.program.checkout.framework_discovery import Files, Layout, said_version
from preflight.program.checkout.parser_options import GENERATES, OwnOption, adds_options, helpers, own_options
from preflight.run.version_ranges import numbers
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any


@cache
def options_in(framework: str, release: str) -> frozenset[str]:
    """The options that a release adds to those of its base framework."""
    data = schemas.read(f"{framework}/options")
    at = list(data["commits"]).index(release)
    spans = data["options"].items()
    return frozenset(
        name for name, rows in spans if any(first <= at <= last and row is not None for first, last, row in rows)
    )


try:  # hashlib first loads OpenSSL, which takes longer than reading a config
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
    data: dict[str, Any] = schemas.read(f"{framework}/releases")
    return data


@cache
def published(framework: str) -> Mapping[str, Any]:
    """Tag or branch → the release that it is read as, its files that differ from that one's, and the rules of that
    one whose checks it lacks."""
    if not schemas.exists(f"{framework}/published"):
        return {}
    data: dict[str, Any] = schemas.read(f"{framework}/published")["published"]
    return data


def known_releases(framework: str) -> tuple[str, ...]:
    """The numbered releases of a framework, oldest first."""
    return tuple(name for name in _listed(framework)["releases"] if numbers(name))


def built_on(framework: str, release: str) -> Mapping[str, str]:
    """The releases of other frameworks that a release is built on."""
    on: Mapping[str, str] = _listed(framework)["releases"].get(release, {}).get("on", {})
    return on


def likeness(framework: str, files: Files) -> Likeness:
    """The similarity of a checkout's files to each release."""
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
    """The tag whose files the checkout has, or ""."""
    listed = _listed(framework)
    order = list(listed["releases"])
    for tag, row in published(framework).items():
        at = order.index(row["release"])
        wanted = {path: objects[at] for path, objects in listed["files"].items()} | row["files"]
        if all(here == wanted[path] for path, here in found.items() if here is not None or wanted[path] is not None):
            return str(tag)
    return ""


def object_of(text: str) -> str:
    """The first digits of git's blob id of a text."""
    data = text.encode("utf-8")
    return str(sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()[:DIGITS])


def nearest(framework: str, said: str, like: Likeness) -> str:
    """The described release most similar to a checkout; "" if unknown.

    The release that it names, otherwise the one with most of its files, otherwise the newest before the one that it
    names.
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


RECKONED = 12
"""Files of a checkout compared for one rule."""


class OwnChecks:
    """The checks in the files of one package.

    renamed: upstream's package, if it has another name here, and that name. arguments: arguments that have another
    name in the described release, each with that name.
    """

    def __init__(
        self,
        framework: str,
        files: Files,
        calls: str,
        renamed: tuple[str, str] | None = None,
        arguments: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.framework, self._files, self._calls, self._renamed = framework, files, re.compile(calls), renamed
        self._arguments = arguments
        self._hashes: dict[str, frozenset[str]] = {}
        self._answers: dict[str, bool | None] = {}

    def has(self, rule: str) -> bool | None:
        """Whether the checkout contains one of the statements that a rule repeats.

        None if the rule repeats none of this framework, or where the run dies at a statement that is not a check.
        """
        if rule not in self._answers:
            self._answers[rule] = self._compared(rule)
        return self._answers[rule]

    def _compared(self, rule: str) -> bool | None:
        data = _evidence(self.framework)
        sites = data["rules"].get(rule, ((),))[0]
        statements = [data["sites"][id] for id in sites if id in data["sites"]]
        if not statements:
            return None
        if any(self._holds(kind, runs, data["files"]) for kind, runs, *_ in statements):
            return True
        return False if any(kind in REFUSALS for kind, *_ in statements) else None

    def _holds(self, kind: str, runs: list[list[Any]], files: list[str]) -> bool:
        wanted = {run[2] for run in runs}
        paths = dict.fromkeys(path for run in reversed(runs) for path in self._places(files[run[0]]))
        everything = kind in ("statement", "parser", "text")
        return any(wanted & self._in(path, everything) for path in list(paths)[:RECKONED])

    def _places(self, path: str) -> Iterator[str]:
        """Possible locations of an upstream file here: under its name, under the old name of the package, in the
        parser."""
        ours = path.replace(*self._renamed, 1) if self._renamed else path
        package = ours.partition("/")[0]
        yield from (ours, f"{package}/training/arguments.py", f"{package}/arguments.py")

    def _in(self, path: str, everything: bool) -> frozenset[str]:
        key = f"{path} {everything}"
        if key not in self._hashes:
            text = self._files.code(path)
            self._hashes[key] = frozenset(self._read(path, text, everything)) if text is not None else frozenset()
        return self._hashes[key]

    def _read(self, path: str, text: str, everything: bool) -> Iterable[str]:
        from preflight.program.checkout.guarded_statements import (
            lines,
            sites,  # only errors in an altered checkout need it
        )

        if not path.endswith(".py"):
            return (site.hash for site in lines(path, text))
        for ours, theirs in self._arguments.items():
            text = re.sub(rf"\bargs\.{re.escape(ours)}\b", f"args.{theirs}", text)
        try:
            return [site.hash for site in sites(path, text, self._calls, everything=everything)]
        except (RecursionError, MemoryError):
            return ()


@cache
def _evidence(framework: str) -> dict[str, Any]:
    data: dict[str, Any] = schemas.read(f"{framework}/evidence")
    return data


MOST_PARSERS = 300
"""Files below the package in which options may be added."""


class Package:
    """A framework package in a checkout. The release is determined once, options and checks on demand."""

    def __init__(self, layout: Layout, files: Files) -> None:
        self.layout, self.files = layout, files
        self.framework = layout.framework
        file, pattern = layout.version
        text = files.text(file) if file else None
        self.said = said_version(text, pattern) if text is not None else ""
        if not self.said and layout.older[0] and (text := files.text(layout.older[0])) is not None:
            file, pattern = layout.older
            self.said = said_version(text, pattern) if f"'{layout.package}'" in text.replace('"', "'") else ""
        like = likeness(self.framework, files)
        self.tag = like.tag
        self.release = (
            published(self.framework)[like.tag]["release"]
            if like.tag
            else nearest(self.framework, self.said, like) or self._by_options()
        )
        self.proven = bool(like.tag) or self.release in like.whole
        self.changed = 0 if self.proven else like.of.get(self.release, 0) - like.same.get(self.release, 0)
        self.resembles = like.same.get(self.release, 0) > 0
        told = bool(self.said) or self.resembles
        fragment = told and self.release in like.partial  # the other parts are elsewhere
        self.partial = fragment or not self.release
        self.evidence = like.tag or (file if self.said else f"{layout.package}/")
        self._checks: OwnChecks | None = None

    @property
    def ancient(self) -> bool:
        """Whether it is a Megatron-LM from before the introduction of the core."""
        if self.framework != "megatron" or self.said or self.resembles:
            return False
        return self.layout.package == "." or self.files.text("megatron/core/__init__.py") is None

    def _by_options(self) -> str:
        """The release with the options most similar to the checkout's."""
        own = {one.option for one in self.options}
        if not own:
            return ""
        return max(known_releases(self.framework), key=lambda name: _alike(own, _options(self.framework, name)))

    @cached_property
    def options(self) -> tuple[OwnOption, ...]:
        """The options that the parser of the checkout adds, if its file differs from the released one."""
        found: dict[str, OwnOption] = {}
        for number, name in enumerate(self._parsers()):
            if number >= MOST_PARSERS:
                break
            text = self.files.code(name) if adds_options(self.files.text(name) or "") else None
            for one in own_options(text) if text is not None else ():
                found[one.option] = _joined(found.get(one.option), one)
        return tuple(found.values())

    @cached_property
    def opened(self) -> bool:
        """Whether a package outside of the checkout adds options to its parser."""
        texts = (self.files.text(f"{self.layout.package}/{one}") or "" for one in self.layout.parser)
        packages = frozenset(name for text in texts for name in helpers(text))
        return any(not os.path.lexists(os.path.join(self.files.root, name)) for name in packages)

    def _parsers(self) -> list[str]:
        """The files that add options, with the classes that options are generated from."""
        names = []
        for part in self.layout.parser:
            place = f"{self.layout.package}/{part}"
            names += [place] if part.endswith(".py") else list(self.files.names(place))
        if self.framework == "megatron" and GENERATES in (self.files.text(names[0]) or ""):
            names += [f"megatron/core/{one}.py" for one in ("model_parallel_config", "transformer/transformer_config")]
        return names

    @property
    def lacks(self) -> frozenset[str]:
        """The rules of the release whose checks a tag lacks."""
        return frozenset(published(self.framework)[self.tag]["lacks"]) if self.tag else frozenset()

    def checks(self, arguments: Mapping[str, str]) -> OwnChecks:
        """The checks of the checkout, compared once. arguments: as for OwnChecks."""
        if self._checks is None:
            self._checks = self._compared(arguments)
        return self._checks

    def _compared(self, arguments: Mapping[str, str]) -> OwnChecks:
        theirs = {"mindspeed-llm": "mindspeed_llm"}.get(self.framework, self.layout.package)
        renamed = (theirs, self.layout.package) if theirs != self.layout.package else None
        return OwnChecks(self.framework, self.files, self.layout.calls, renamed, arguments)


def _joined(first: OwnOption | None, other: OwnOption) -> OwnOption:
    """An option added in several places: from the first place, with the choices of all."""
    if first is None or not first.kind:
        return other if first is None or first.choices is None else other._replace(choices=_both(other, first))
    return first._replace(choices=_both(first, other))


def _both(first: OwnOption, other: OwnOption) -> tuple[Any, ...] | None:
    if first.choices is None or (other.choices is None and other.kind):
        return None
    return tuple(dict.fromkeys((*first.choices, *(other.choices or ()))))


def _alike(ours: set[str], theirs: frozenset[str]) -> float:
    return len(ours & theirs) / len(ours | theirs) if theirs else 0.0


def _options(framework: str, release: str) -> frozenset[str]:
    """The options that a release adds to those of its base."""

    return options_in(framework, release)


def entry_options(files: Files, entry: str) -> Mapping[str, OwnOption]:
    """The options that an entry script adds, by name."""
    text = files.code(entry)
    return {one.option: one for one in own_options(text)} if text is not None else {}
