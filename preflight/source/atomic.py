"""Writes an edited source over its file: nobody else's edit is lost, and no other name keeps the old text."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from preflight.source.text import InputError, Source
from preflight.source.writing import replace, told


def write(old: Source, new: Source) -> None:
    """Write an edited source over the file it was read from, in one step.

    Raises InputError when the file changed since, has other names, or cannot be written.
    """
    if old.path is None:
        raise InputError("is not a file that can be written", old.name)
    path = Path(os.path.realpath(old.path))
    with told(old.name), _locked(path):
        status = path.stat()
        if path.read_bytes() != old.encode(old.text):
            raise InputError("changed while it was being fixed; nothing was written", old.name)
        if not os.access(path, os.W_OK) or not status.st_mode & 0o222:
            raise InputError("is read-only; nothing was written", old.name)
        if status.st_nlink > 1:
            raise InputError(
                "has other names (hard links), which would keep the old text; nothing was written", old.name
            )
        replace(path, status, new.encode(new.text), old.name)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other fixers away; a file that one of them has replaced meanwhile is seen as changed by its bytes."""
    with open(path, "rb") as stream:
        with contextlib.suppress(ImportError, OSError):  # Windows, and file systems without locks
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
