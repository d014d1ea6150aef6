"""A user's cache folder for data that can be recreated: safe to delete, never required, files replaced atomically.

Its contents are trusted only if this user wrote them on this machine. The folder may be in a checkout with contents
from others: therefore it is never reached through a link, belongs to the user, has no other writer, and every text in
it carries a hash under a secret. The secret is next to it and is valid only together with the inode and time of its
file, which are unknown before the file is created: a secret from a checkout, an archive or a copy is worthless.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from functools import cache as once

from preflight.source import writing

try:  # hashlib first loads OpenSSL, which takes longer than all of this
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

VARIABLE = "PREFLIGHT_CACHE_DIR"
DAY = 24 * 3600
SECRET = "secret"
BYTES = 32
_OURS = r"[0-9a-f]{32}\.json(\.\d+\.tmp)?"
_NO_LINK = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def folder() -> str:
    """The cache folder; "" (no caching) if there is no place for it or PREFLIGHT_CACHE_DIR is empty."""
    stated = os.environ.get(VARIABLE)
    if stated is not None:
        return stated
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA", "")
    else:
        home = os.environ.get("XDG_CACHE_HOME", "") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "preflight") if os.path.isabs(home) else ""


def digest(text: str, key: bytes = b"") -> str:
    """A short hash of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=key).hexdigest()


def read(name: str) -> str | None:
    """The text cached under a name, or None if this user has written none."""
    found = read_data(name)
    return None if found is None else found.decode("utf-8", "surrogatepass")


def read_data(name: str) -> bytes | None:
    """The same as bytes."""
    where = folder()
    if not where or not _owned(where) or not _owned(os.path.dirname(os.path.join(where, name))):
        return None
    key, kept = _secret(where), _content(os.path.join(where, name))
    if key is None or kept is None:
        return None
    seal, _, data = kept.partition(b"\n")
    return data if seal == _seal(name, data, key) else None


def _seal(name: str, data: bytes, key: bytes) -> bytes:
    made = blake2b(f"{name}\n".encode("utf-8", "surrogatepass"), digest_size=16, key=key)
    made.update(data)
    return made.hexdigest().encode("ascii")


def write(name: str, text: str) -> None:
    """Cache a text under a name, which may contain one folder; does nothing if it cannot be written safely."""
    write_data(name, text.encode("utf-8", "surrogatepass"))


def write_data(name: str, data: bytes) -> None:
    """The same for bytes."""
    where = folder()
    if not where:
        return
    path = os.path.join(where, name)
    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        if not _owned(where):
            return
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        key = _secret(where) or _new_secret(where)
        if key is not None and _owned(os.path.dirname(path)):
            writing.keep_file(path, _seal(name, data, key) + b"\n" + data)
    except OSError:
        return


def sweep(name: str, now: float, days: int = 30) -> None:
    """Remove cached files of a folder that are old; runs once a day."""
    where = os.path.join(folder(), name)
    mark = os.path.join(where, ".swept")
    if not folder() or not _owned(folder()) or not _owned(where):
        return
    try:
        if os.path.lexists(mark) and now - os.lstat(mark).st_mtime < DAY:
            return
        for entry in os.scandir(where):
            old = now - entry.stat(follow_symlinks=False).st_mtime > days * DAY
            if old and re.fullmatch(_OURS, entry.name) and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)
    except OSError:
        return
    write(f"{name}/.swept", "")


def _owned(where: str) -> bool:
    """Whether a path is a real folder of this user, which no other user may write to."""
    try:
        status = os.lstat(where)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(status.st_mode) and _private(status, 0o022)


def _private(status: os.stat_result, others: int) -> bool:
    """Whether a file belongs to this user and grants others none of these permissions."""
    return sys.platform == "win32" or (status.st_uid == os.geteuid() and not status.st_mode & others)


def _content(path: str) -> bytes | None:
    """The contents of a regular file of this user that others cannot write."""
    try:
        handle = os.open(path, os.O_RDONLY | _NO_LINK)
        with open(handle, "rb") as stream:
            status = os.fstat(handle)
            return stream.read() if stat.S_ISREG(status.st_mode) and _private(status, 0o022) else None
    except (OSError, ValueError):
        return None


def _secret(where: str) -> bytes | None:
    """The key of this user's hashes, or None if it does not exist yet."""
    try:
        handle = os.open(os.path.join(where, SECRET), os.O_RDONLY | _NO_LINK)
    except (OSError, ValueError):
        return None
    try:
        status, found = os.fstat(handle), os.read(handle, BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(handle)
    if not stat.S_ISREG(status.st_mode) or not _private(status, 0o077) or len(found) != BYTES:
        return None
    return blake2b(b"%d %d" % (status.st_ino, status.st_ctime_ns), digest_size=BYTES, key=found).digest()


def _new_secret(where: str) -> bytes | None:
    """Create the key; if another call creates one first, that key is used."""
    path = os.path.join(where, SECRET)
    if _secret(where) is None:
        writing.keep_file(path, os.urandom(BYTES))
    return _secret(where)


@once
def stamp(roots: tuple[str, ...]) -> str:
    """A stamp that changes with any Python file below the folders, or with this Python: from sizes and times, not
    contents.

    Installed packages are replaced as a whole, so the time and inode of their folder suffice.
    """
    found, stack = [sys.version, str(sys.flags.optimize)], list(roots)
    while stack:
        where = stack.pop()
        if "site-packages" in where or "dist-packages" in where:
            status = os.stat(where)
            found.append(f"{where} {status.st_ino} {status.st_ctime_ns}")
            continue
        for entry in sorted(os.scandir(where), key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                status = entry.stat()
                found.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
            elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith(("__pycache__", ".")):
                stack.append(entry.path)
    return "\n".join(found)
