"""Other scripts that a script names: opened only where they lie in its folder or below;
what somebody types in a command, anywhere."""

from __future__ import annotations

from pathlib import Path

from preflight.loaders import COMMAND
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
        folder = self.source.path.parent
        self.looked[str(folder / name)] = None
        try:
            path, here = (folder / name).resolve(), folder.resolve()
            below = path.is_relative_to(here)
            if below and path in self.source.beside:
                return self.source.beside[path]
            if (
                not (below or self.source.name == COMMAND)
                or not path.is_file()
                or path.stat().st_size > MAX_BYTES
                or path == self.source.path.resolve()
            ):
                return None
            if path not in self.opened:
                if len(self.opened) >= MAX_FILES:
                    return None
                self.opened[path] = Source.read(
                    path, str(Path(self.source.name).parent / path.relative_to(here)) if below else str(path)
                )
        except (InputError, OSError, ValueError):
            return None
        return self.opened[path]
