"""The scripts beside a config that say how it is used: a program that loads it, a launch that names it,
a runner of tests."""

from __future__ import annotations

import os
import re
from functools import cached_property

from preflight.program.checkout.files import Files, listed

MOST_SCRIPTS = 100
"""Scripts of a folder that are looked at."""
HIGHEST_RUNNER = 3
"""Folders above a config in which a runner is looked for."""
_NAMED = re.compile(r"[\"'/]([\w.+-]+\.ya?ml)\b")
_LAUNCHED = re.compile(r"(?<![\w.+-])([\w.+-]+\.ya?ml)\b")
_ENTRY = "run_mindformer.py"
_NOT_FALSE = re.compile(r"!=\s*\\?[\"']?false")


class Neighbours:
    """The scripts of one folder."""

    def __init__(self, folder: str) -> None:
        self.folder, self.files = folder, Files(folder)

    @cached_property
    def _names(self) -> list[str]:
        return [entry.name for entry in listed(self.folder)]

    def _scripts(self, suffix: str) -> list[tuple[str, str]]:
        names = [name for name in self._names if name.endswith(suffix)][:MOST_SCRIPTS]
        return [(name, text) for name in names if (text := self.files.text(name)) is not None]

    @cached_property
    def programs(self) -> dict[str, str]:
        """Config → the Python program that names it in a text."""
        return {
            config: name
            for name, text in reversed(self._scripts(".py"))
            if ".yaml" in text or ".yml" in text
            for config in _NAMED.findall(text)
        }

    @cached_property
    def launches(self) -> dict[str, tuple[str, ...]]:
        """Config → the scripts that name it beside MindFormers' entry."""
        found: dict[str, tuple[str, ...]] = {}
        for name, text in self._scripts(".sh"):
            for config in dict.fromkeys(_LAUNCHED.findall(text)) if _ENTRY in text else ():
                found[config] = (*found.get(config, ()), name)
        return found

    @cached_property
    def runner(self) -> str:
        """The script that takes the options of a functional test and leaves out those that are false."""
        return next((name for name, text in self._scripts(".sh") if _drops_false(text)), "")


def _drops_false(text: str) -> bool:
    """Whether a script takes the options of a test but those that are false, on one line or over two."""
    lines = [*text.split("\n"), ""] if ".MODEL_ARGS" in text else []
    taken = (at for at, line in enumerate(lines) if ".MODEL_ARGS" in line)
    return any(_NOT_FALSE.search(line) for at in taken for line in lines[at : at + 2])


def folders_above(start: str, number: int) -> list[str]:
    """A folder and some of those above it."""
    found = [start]
    while len(found) <= number and os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found
