"""Positional parameters: set and shift."""

from __future__ import annotations

import re

from preflight.loaders.shell.expand import Expander
from preflight.loaders.shell.word_splitting import Field, text_of


def set_options(expander: Expander, words: list[Field]) -> bool:
    """`set -- …` and `set -u`; whether unset variables end the script from here on."""
    texts = [text_of(field.pieces) or "" for field in words]
    strict = False
    for at, text in enumerate(texts):
        if text == "--":
            expander.arguments = [tuple(field.pieces) for field in words[at + 1 :]]
            break
        strict = strict or bool(re.fullmatch(r"-[^\Wu]*u\w*", text)) or text == "nounset"
    return strict


def shift(expander: Expander, words: list[Field]) -> None:
    """`shift [n]`."""
    count = text_of(words[0].pieces) if words else "1"
    if expander.arguments is not None:
        expander.arguments = (
            expander.arguments[int(count) :] if count is not None and count.isdecimal() and len(count) < 6 else None
        )
