"""Files of a checkout, read within limits: only regular files inside it, limited in size and number."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from preflight.source.budget import Allowance
from preflight.source.text import InputError, Source

MAX_BYTES = 1_000_000
"""Of one file: the largest parser of a framework has 300,000."""
MOST_FILES = 4_000
MOST_BYTES = 40_000_000
"""Of all files opened in one checkout."""
MOST_ENTRIES = 20_000
MOST_BESIDE = 5_000
"""Entries of one folder; of a larger one none is looked at."""
MAX_CODE, MOST_CODE = 300_000, 2_000_000
"""Characters of a file, and of a checkout, parsed as Python: the largest parser of a framework has 250,000."""
DEEPEST = 10
NEVER = ("node_modules", "__pycache__", "site-packages", "build")


class Files:
    """The files below a folder, each read once. looked: the paths opened or searched."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.looked: dict[str, None] = {}
        self._real = os.path.realpath(root)
        self._files, self._bytes, self._code = Allowance(MOST_FILES), Allowance(MOST_BYTES), Allowance(MOST_CODE)
        self._parsed: set[str] = set()
        self._texts: dict[str, str | None] = {}

    def text(self, name: str) -> str | None:
        """The text of a file; None if it is missing, outside, or a limit is reached."""
        if name not in self._texts:
            self._texts[name] = self._read(name)
        return self._texts[name]

    def code(self, name: str) -> str | None:
        """The text of a file to parse as Python; None also after the parsing limit."""
        text = self.text(name)
        if text is None or name in self._parsed:
            return text
        if len(text) > MAX_CODE or not self._code.draw(len(text)):
            return None
        self._parsed.add(name)
        return text

    def _read(self, name: str) -> str | None:
        path = os.path.join(self.root, name)
        self.looked[path] = None
        try:
            size = os.path.getsize(path) if self._inside(path) else MAX_BYTES + 1
            if size > MAX_BYTES or not self._bytes.draw(size) or not self._files.draw(1):
                return None
            return Source.read(Path(path), limit=MAX_BYTES).text
        except (InputError, OSError):
            return None

    def _inside(self, path: str) -> bool:
        """Whether a path, with links resolved, is a file below the folder."""
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError):
            return False
        return real.startswith(os.path.join(self._real, "")) and os.path.isfile(real)

    def names(self, folder: str = "", suffixes: tuple[str, ...] = (".py",), deepest: int = DEEPEST) -> Iterator[str]:
        """The files below a folder of the checkout with a suffix, sorted, without links and hidden folders."""
        waiting = [(folder, 0)]
        seen = 0
        while waiting and seen < MOST_ENTRIES:
            at, depth = waiting.pop()
            inner = []
            for entry in listed(os.path.join(self.root, at)):
                seen += 1
                name = f"{at}/{entry.name}" if at else entry.name
                if entry.is_symlink() or seen > MOST_ENTRIES:
                    continue
                if entry.is_dir():
                    inner += [(name, depth + 1)] if depth < deepest and _entered(entry.name) else []
                elif entry.name.endswith(suffixes):
                    yield name
            waiting += reversed(inner)


def _entered(name: str) -> bool:
    return not name.startswith(".") and name not in NEVER


def listed(folder: str) -> list[os.DirEntry[str]]:
    """The contents of a folder, sorted by name; empty if it cannot be listed or has too many entries."""
    try:
        with os.scandir(folder) as entries:
            found = list(islice(entries, MOST_BESIDE + 1))
        return sorted(found, key=lambda entry: entry.name) if len(found) <= MOST_BESIDE else []
    except (OSError, ValueError):
        return []
