"""The settings that hold for a file: those of the nearest folder that has some, else those of the call."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from preflight.checking.checker import Checker
from preflight.run import settings
from preflight.run.settings import Settings
from preflight.source.text import InputError

HIGHEST = 64
"""Folders above a file that are looked into."""


class Nearest:
    """Gives the checker for a file; each settings file is read once.

    make: a checker for settings, with what the call says beside them.
    """

    def __init__(self, own: Checker, make: Callable[[Settings], Checker]) -> None:
        self._own, self._make = own, make
        self._root = os.path.abspath(own.settings.root)
        self._folders: dict[str, Checker] = {}

    def __call__(self, path: Path) -> Checker:
        """The checker for a file. Raises InputError for settings that cannot be used."""
        start = folder = os.path.dirname(os.path.abspath(path))
        visited: list[str] = []
        found = self._own
        for _ in range(HIGHEST):
            if folder in self._folders:
                found = self._folders[folder]
                break
            visited.append(folder)
            if folder == self._root or (made := self._in(folder, start)) is not None:
                found = self._own if folder == self._root else made or self._own
                break
            above = os.path.dirname(folder)
            if above == folder:
                break
            folder = above
        self._folders.update(dict.fromkeys(visited, found))
        return found

    def _in(self, folder: str, start: str) -> Checker | None:
        """The checker for the settings in a folder itself; None where it has none, or somebody else may write there."""
        has = any(os.path.isfile(os.path.join(folder, name)) for name in settings.FILES)
        if not has or _foreign(folder, start):
            return None
        try:
            path = settings.in_folder(Path(folder))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", str(error.filename)) from None
        if path is None:
            return None
        made = self._make(settings.load(path))
        if self._own.errors_only:
            made.ask_for_errors_only()
        return made


def _foreign(folder: str, start: str) -> bool:
    """Whether others may write to a folder, or it belongs to somebody else than the file's folder does, and root."""
    try:
        status, own = os.stat(folder), os.stat(start)
    except OSError:
        return True
    return bool(status.st_mode & stat.S_IWOTH) or status.st_uid not in (own.st_uid, 0)
