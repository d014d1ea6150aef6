"""Replaces a file in one step: afterwards it is either the old one or the new one, with its owner and permissions."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from preflight.source import InputError, Source


def write(old: Source, new: Source) -> None:
    """Write an edited source over the file it was read from. Raises InputError when the file changed since, or cannot be written."""
    if old.path is None:
        raise InputError("is not a file that can be written", old.name)
    path = Path(os.path.realpath(old.path))
    try:
        status = path.stat()
        if path.read_bytes() != old.encode(old.text):
            raise InputError("changed while it was being fixed; nothing was written", old.name)
        if not os.access(path, os.W_OK) or not status.st_mode & 0o222:
            raise InputError("is read-only; nothing was written", old.name)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".preflight", dir=path.parent)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", old.name) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(new.encode(new.text))
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, status.st_mode & 0o7777)
        if os.geteuid() == 0 or status.st_gid != os.getegid():
            with contextlib.suppress(OSError):
                os.chown(name, status.st_uid, status.st_gid)
        os.replace(name, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise InputError(f"cannot be written: {error.strerror or error}", old.name) from None
