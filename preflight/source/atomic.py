"""Writes an edited source over its file: nobody else's edit is lost, and no other name keeps the old text."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from preflight.source.text import InputError, Source
from preflight.source.writing import replace, told

PATIENCE = 10.0
"""Seconds until a lock of somebody else is given up."""
SILENCE = 0.5
"""Seconds until a user hears of it."""
PAUSE = 0.02


def write(old: Source, new: Source, tell: Callable[[str], None] = lambda name: None) -> None:
    """Write an edited source over the file it was read from, in one step.

    tell: is called with the file's name where another process locks it. Raises InputError when the file changed since,
    has other names, stays locked, or cannot be written.
    """
    if old.path is None:
        raise InputError("is not a file that can be written", old.name)
    path = Path(os.path.realpath(old.path))
    with told(old.name), _locked(path, old.name, tell):
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
def _locked(path: Path, shown: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Keep other fixers away; a file that one of them has replaced meanwhile is seen as changed by its bytes.

    Whoever may read the file may hold a lock on it: so the wait ends. Raises InputError.
    """
    with open(path, "rb") as stream:
        start, waits = time.monotonic(), False
        while not _lock(stream.fileno()):
            waited = time.monotonic() - start
            if waited > PATIENCE:
                raise InputError("is locked by another process; nothing was written", shown)
            if waited > SILENCE and not waits:
                tell(shown)
            waits = waits or waited > SILENCE
            time.sleep(PAUSE)
        yield


def _lock(handle: int) -> bool:
    """Lock a file; False where somebody else holds a lock."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows, and file systems without locks
        return True
    return True
