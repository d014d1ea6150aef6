"""The words of a command that identify what it runs: a program, a python, an entry script."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.loaders.document import Word, word_of
from preflight.loaders.launcher_options import PYTHON, read_options
from preflight.source.lazy_regex import lazy_pattern

PYTHON_NAME = lazy_pattern(r"(?:python|pypy)[\d.]*|\$\{?(?=\w*PYTHON)\w+\}?", re.IGNORECASE)

_FOUND = lazy_pattern(r"(?:\$\(|`)\s*(?:which|command -v|type -p)\s+[\"']?([\w.+-]+)[\"']?\s*[)`]")
"""A command whose output is the path of a program: `$(which torchrun)`."""


def command_name(word: Word) -> str:
    """The file name of a command word, even if its folder is unknown; "" if the name itself is."""
    last = word.pieces[-1].text if word.text is None and word.pieces else word.text
    if last is None and (found := _FOUND.fullmatch(word.because)) is not None:
        return found[1]
    if last is None:
        return word.because if word.because.startswith("$") and "PYTHON" in word.because.upper() else ""
    return last.rpartition("/")[2]


def script_of(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """A command without the python, and its options, before the script."""
    return read_options(words[1:], PYTHON).rest if words and PYTHON_NAME.fullmatch(command_name(words[0])) else words


def first_value(words: Sequence[Word]) -> Word:
    """The first word that is not an option."""
    return next((word for word in words if word.text is None or not word.text.startswith("-")), words[0])


def entry_of(word: Word) -> Word:
    """The entry's name is needed even if its folder is unknown: unknown parts are kept as written."""
    if word.text is not None or not word.pieces:
        return word
    made = word_of(tuple(p if p.text is not None else p._replace(text=p.because, exact=False) for p in word.pieces))
    return made._replace(because=word.because)
