"""Other scripts that a script names: opened only where they lie in its folder or below, or in its checkout where that
may be read; what somebody types in a command, anywhere."""

from __future__ import annotations

import os
from pathlib import Path

from preflight.loaders import COMMAND
from preflight.source.budget import may_read
from preflight.source.checkout_root import checkout_root
from preflight.source.text import InputError, Source

MAX_FILES = 20
MAX_BYTES = 2_000_000


class Files:
    """Opens files beside a script; remembers them, and which it looked for."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.opened: dict[Path, Source] = {}
        self.looked: dict[str, None] = {}

    def open(self, name: str | None) -> Source | None:
        """A file by the name a script gives it, or None when it is not there, lies elsewhere, or is too large."""
        if not name or self.source.path is None:
            return None
        return self._open(self.source.path, self.source.path.parent / name)

    def sourced(self, name: str, end: bool, source: Source) -> Source | None:
        """The same, for what a text sources: a name that leads nowhere from the folder of the script may be one from
        the folder of the text, or from the top of the checkout. end: whether only the end of the name is known."""
        name = name.lstrip("/") if end else name
        found, script = self.open(name), self.source.path
        if found is not None or not name or script is None:
            return found
        if source.path is not None and source.path != script:
            found = self._open(script, source.path.parent / name)
        if found is None and self.source.in_checkout and not (end and "/" not in name):  # $HOME/env.sh is another file
            top = Path(checkout_root(script))
            tail = _from_top(name, top.name)
            found = self._open(script, top / tail) if tail else None
        return found

    def _open(self, script: Path, target: Path) -> Source | None:
        self.looked[str(target)] = None
        try:
            path, here = target.resolve(), script.parent.resolve()
            near = path.is_relative_to(here) or self._in_checkout(script, path)
            if near and path in self.source.beside:
                return self.source.beside[path]
            if not (near or self.source.name == COMMAND) or not path.is_file() or path == script.resolve():
                return None
            if path not in self.opened:
                size = path.stat().st_size
                if len(self.opened) >= MAX_FILES or size > MAX_BYTES or not may_read(size):
                    return None
                shown = os.path.normpath(Path(self.source.name).parent / os.path.relpath(path, here))
                self.opened[path] = Source.read(path, shown if near else str(path))
        except (InputError, OSError, ValueError):
            return None
        return self.opened[path]

    def _in_checkout(self, script: Path, path: Path) -> bool:
        """Whether a file lies in the checkout around the script, where that may be read."""
        return self.source.in_checkout and path.is_relative_to(checkout_root(script))


def _from_top(name: str, top: str) -> str:
    """A path as it is from the top folder of a checkout: a relative one, or what follows the folder's name in one of
    another machine; "" where nothing does."""
    return name.partition(f"/{top}/")[2] if name.startswith("/") else name
