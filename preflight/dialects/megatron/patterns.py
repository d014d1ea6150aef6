"""The little languages of pipeline layouts and hybrid layer patterns."""

from __future__ import annotations

import re
from typing import NamedTuple

LAYERS = frozenset("MG*D+-E")
"""Mamba, gated delta net, attention, sparse attention, latent attention, MLP, mixture of experts."""

LONGEST = 100_000


class Hybrid(NamedTuple):
    """A hybrid layer pattern taken apart. mtp: the layers of one prediction depth, None without."""

    main: str
    mtp: str | None
    depths: int

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.main.split("|"))

    @property
    def layers(self) -> str:
        return self.main.replace("|", "")


def hybrid(pattern: str) -> Hybrid:
    """Take a pattern such as "M*M*|M-M-/MM/MM" apart. Raises ValueError where upstream does."""
    main, *depths = pattern.split("/")
    _symbols(main.replace("|", ""))
    if not any(depths):
        return Hybrid(main, None, 0)
    if len(set(depths)) > 1:
        raise ValueError("the depths of multi-token prediction differ")
    _symbols(depths[0])
    return Hybrid(main, depths[0], len(depths))


def _symbols(text: str) -> None:
    if (odd := next((c for c in text if c not in LAYERS), None)) is not None:
        raise ValueError(f"{odd!r} is no layer symbol")
    if "*" in text and ("D" in text or "+" in text):
        raise ValueError("attention is mixed with latent or sparse attention")


def layout(text: str) -> tuple[str, ...]:
    """The stages of a pipeline layout such as "Et*2|(tt|)*5t|tmL": each a string of E, t, m, L. Raises ValueError."""
    text = text.replace(",", "")
    for form in (r"\(([^)]+)\)\*(\d+)", r"(.)\*(\d+)"):
        text = re.sub(form, _repeat, text)
        if len(text) > LONGEST:
            raise ValueError("the layout is too long")
    if (odd := next((c for c in text if c not in "EtmL|"), None)) is not None:
        raise ValueError(f"{odd!r} is no layer of a pipeline layout")
    return tuple(text.split("|"))


def _repeat(match: re.Match[str]) -> str:
    if len(match[2]) > 6 or len(match[1]) * int(match[2]) > LONGEST:
        raise ValueError("the layout is too long")
    return match[1] * int(match[2])
