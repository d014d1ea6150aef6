"""A framework in a checkout: its release, whether it is as it was published, its own options and checks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from preflight.program.checkout.files import Files
from preflight.program.checkout.own_checks import OwnChecks
from preflight.program.checkout.packages import Layout, said_version
from preflight.program.checkout.parser_options import GENERATES, OwnOption, adds_options, own_options
from preflight.program.checkout.releases import known_releases, likeness, nearest, published

MOST_PARSERS = 300
"""Files below the package in which options may be added."""


class Package:
    """What lies in a checkout. The release is looked at once, options and checks when they are asked for."""

    def __init__(self, layout: Layout, files: Files) -> None:
        self.layout, self.files = layout, files
        self.framework = layout.framework
        file, pattern = layout.version
        text = files.text(file) if file else None
        self.said = said_version(text, pattern) if text is not None else ""
        like = likeness(self.framework, files)
        self.tag = like.tag
        self.release = (
            published(self.framework)[like.tag]["release"]
            if like.tag
            else nearest(self.framework, self.said, like) or self._by_options()
        )
        self.proven = bool(like.tag) or self.release in like.whole
        self.changed = 0 if self.proven else like.of.get(self.release, 0) - like.same.get(self.release, 0)
        told = bool(self.said) or like.same.get(self.release, 0) > 0
        fragment = told and self.release in like.partial  # the rest comes from elsewhere
        self.partial = fragment or not self.release
        self.evidence = like.tag or (file if self.said else f"{layout.package}/")
        self._checks: OwnChecks | None = None

    def _by_options(self) -> str:
        """The release whose options those of the checkout are most like."""
        own = {one.option for one in self.options}
        if not own:
            return ""
        return max(known_releases(self.framework), key=lambda name: _alike(own, _options(self.framework, name)))

    @cached_property
    def options(self) -> tuple[OwnOption, ...]:
        """The options that the parser of the checkout adds, where its file differs from the released one."""
        found: dict[str, OwnOption] = {}
        for number, name in enumerate(self._parsers()):
            if number >= MOST_PARSERS:
                break
            text = self.files.code(name) if adds_options(self.files.text(name) or "") else None
            for one in own_options(text) if text is not None else ():
                found[one.option] = _joined(found.get(one.option), one)
        return tuple(found.values())

    def _parsers(self) -> list[str]:
        """The files that add options, with the classes that options are made of."""
        names = []
        for part in self.layout.parser:
            place = f"{self.layout.package}/{part}"
            names += [place] if part.endswith(".py") else list(self.files.names(place))
        if self.framework == "megatron" and GENERATES in (self.files.text(names[0]) or ""):
            names += [f"megatron/core/{one}.py" for one in ("model_parallel_config", "transformer/transformer_config")]
        return names

    @property
    def lacks(self) -> frozenset[str]:
        """The rules of the release whose checks a tag does not have."""
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
    """An option that is added in several places: as the first says, with the choices of all."""
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
    """The options that a release adds to those below it."""
    from preflight.program.checkout.release_options import options_in

    return options_in(framework, release)


def entry_options(files: Files, entry: str) -> Mapping[str, OwnOption]:
    """The options that an entry script adds, by name."""
    text = files.code(entry)
    return {one.option: one for one in own_options(text)} if text is not None else {}
