"""Replaces a file in one step: afterwards it is either the old one or the new one, with its owner and permissions."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from preflight.source.text import InputError, Source


def write(old: Source, new: Source) -> None:
    """Write an edited source over the file it was read from.

    Raises InputError when the file changed since, has other names, or cannot be written.
    """
    if old.path is None:
        raise InputError("is not a file that can be written", old.name)
    path = Path(os.path.realpath(old.path))
    try:
        with _locked(path):
            status = path.stat()
            if path.read_bytes() != old.encode(old.text):
                raise InputError("changed while it was being fixed; nothing was written", old.name)
            if not os.access(path, os.W_OK) or not status.st_mode & 0o222:
                raise InputError("is read-only; nothing was written", old.name)
            if status.st_nlink > 1:
                raise InputError(
                    "has other names (hard links), which would keep the old text; nothing was written", old.name
                )
            _replace(path, status, new.encode(new.text), old.name)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", old.name) from None


def write_text(path: Path, text: str) -> None:
    """Write a text to a file in one step; what is no file, as a pipe, is written to. Raises InputError."""
    data = text.encode("utf-8", "backslashreplace")
    try:
        there = os.stat(path) if os.path.exists(path) else None
        if there is not None and not stat.S_ISREG(there.st_mode):
            path.write_bytes(data)
        elif there is not None:
            _replace(Path(os.path.realpath(path)), there, data, str(path))
        else:
            _create(path, data)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", str(path)) from None


def _create(path: Path, data: bytes) -> None:
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}.preflight")
    try:
        with open(temporary, "xb") as stream:
            stream.write(data)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other fixers away; a file that one of them has replaced meanwhile is seen as changed by its bytes."""
    with open(path, "rb") as stream:
        with contextlib.suppress(ImportError, OSError):  # Windows, and file systems without locks
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _replace(path: Path, status: os.stat_result, data: bytes, shown: str) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".preflight", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if hasattr(os, "chown"):
            with contextlib.suppress(OSError):
                os.chown(name, status.st_uid, status.st_gid)
        made = os.stat(name)
        if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
            raise InputError("belongs to another user or group, which a fix would change; nothing was written", shown)
        os.chmod(name, status.st_mode & 0o7777)
        _attributes(path, name)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _attributes(path: Path, name: str) -> None:
    """Extended attributes, access lists among them, as far as the file system takes them."""
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for attribute in os.listxattr(path):
                with contextlib.suppress(OSError):
                    os.setxattr(name, attribute, os.getxattr(path, attribute))
