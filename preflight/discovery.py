"""Which files a call means: the ones it names, and the configs below the folders it names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from preflight.loaders import SCRIPT_SUFFIXES, YAML_SUFFIXES
from preflight.record import NamedTuple
from preflight.settings import Settings, path_matches
from preflight.source import InputError

SUFFIXES = YAML_SUFFIXES + SCRIPT_SUFFIXES
NEVER = ("node_modules", "__pycache__", "site-packages")


class Named(NamedTuple):
    """A file to check. name: as it is shown. asked: it was named itself, not found in a folder."""

    path: Path
    name: str
    asked: bool


def discover(paths: Iterable[str], settings: Settings, exclude: Iterable[str] = (), *, force: bool = False) -> Iterator[Named]:
    """The files of a call, each once, folders in sorted order. force: exclude named files as well.

    A named path that does not exist is handed on: reading it says so. Raises InputError for a folder that cannot be listed.
    """
    patterns = (*settings.exclude, *exclude)
    seen: set[Path] = set()

    def excluded(path: Path) -> bool:
        return bool(patterns) and any(path_matches(settings.relative(path), pattern) for pattern in patterns)

    for name in paths:
        path = Path(name)
        if _is_folder(path):
            found: Iterable[Named] = (Named(p, str(p), False) for p in _walk(path) if not excluded(p))
        else:
            found = () if force and excluded(path) else (Named(path, name, True),)
        for item in found:
            if (key := item.path.absolute()) not in seen:
                seen.add(key)
                yield item


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long: reading it says so
        return False


def _walk(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(folder)) from None
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(".") and entry.name not in NEVER:
                yield from _walk(folder / entry.name)
        elif entry.name.endswith(SUFFIXES) and entry.is_file():
            yield folder / entry.name
