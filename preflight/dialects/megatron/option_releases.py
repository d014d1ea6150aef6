"""Which releases have an option, in words."""

from __future__ import annotations

import re

from preflight.dialects.megatron.option_table import RELEASES, releases_with

ENOUGH, MOST = 3, 60
"""Options that make a text one of options, and those that are looked at."""


def is_a_text_of_options(text: str) -> bool:
    """Whether a text gives options of some release, as a file does that a launch script reads."""
    typed = dict.fromkeys(re.findall(r"(?<![\w-])--[a-z][\w-]+", text))
    return sum(bool(where_an_option_is(option)) for option in list(typed)[:MOST]) >= ENOUGH


def where_an_option_is(text: str) -> list[str]:
    """The releases of each framework that have an option, as people say them."""
    return [said for framework in RELEASES for said in _spans(framework, releases_with(framework, text))]


def _spans(framework: str, releases: tuple[str, ...]) -> list[str]:
    """Releases of a framework as people say them: from one on, or from one to another, with the gaps between them."""
    order = tuple(reversed(RELEASES[framework]))
    runs: list[list[str]] = []
    for release in releases:
        if runs and order.index(release) == order.index(runs[-1][-1]) + 1:
            runs[-1].append(release)
        else:
            runs.append([release])
    return [f"{framework} {_said(run[0], run[-1], order[-1])}" for run in runs]


def _said(first: str, last: str, newest: str) -> str:
    if first == last:
        return first
    return f"{first} and later" if last == newest else f"{first} to {last}"
