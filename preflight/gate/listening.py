"""The path of a Unix socket: taken from nobody who listens, never from a file that is no socket."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from preflight.source.text import InputError


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Inside the block nobody else claims a socket in this folder, and the path is free. Raises InputError, OSError."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        _free(path)
        yield
    finally:
        os.close(folder)


def _free(path: Path) -> None:
    """Delete the socket that a dead server left behind."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise InputError("is there already and is not a socket", str(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(1)
        try:
            caller.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            pass
        except OSError as error:  # it hangs, or it is somebody else's: it may still be alive
            raise InputError(
                f"is the socket of something that does not answer: {error.strerror or error}", str(path)
            ) from None
        else:
            raise InputError("another checker listens on it", str(path))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def identity(path: Path) -> tuple[int, int] | None:
    """Which file it is, None where there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
