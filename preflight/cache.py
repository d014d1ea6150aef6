"""A folder of the user for what can be made again: safe to delete, never needed, replaced in one step."""

from __future__ import annotations

import os
import sys
from functools import cache as once

VARIABLE = "PREFLIGHT_CACHE_DIR"
DAY = 24 * 3600


def folder() -> str:
    """Where the files lie; "" where there is no place, or PREFLIGHT_CACHE_DIR is empty: then nothing is kept."""
    stated = os.environ.get(VARIABLE)
    if stated is not None:
        return stated
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA", "")
    else:
        home = os.environ.get("XDG_CACHE_HOME", "") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "preflight") if os.path.isabs(home) else ""


def read(name: str) -> str | None:
    """The text of a file, None where there is none."""
    where = folder()
    try:
        with open(os.path.join(where, name), encoding="utf-8") as stream:
            return stream.read() if where else None
    except (OSError, UnicodeDecodeError):
        return None


def write(name: str, text: str) -> None:
    """Keep a text under a name, which may have folders; nothing happens where it cannot be written."""
    where = folder()
    if not where:
        return
    path = os.path.join(where, name)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(temporary, "x", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(temporary, path)
    except OSError:
        import contextlib

        with contextlib.suppress(OSError):
            os.unlink(temporary)


def sweep(name: str, now: float, days: int = 30) -> None:
    """Remove the files of a folder that were not written for a while; looks once a day."""
    where = os.path.join(folder(), name)
    mark = os.path.join(where, ".swept")
    try:
        if os.path.exists(mark) and now - os.stat(mark).st_mtime < DAY:
            return
        for entry in os.scandir(where):
            if now - entry.stat().st_mtime > days * DAY:
                os.unlink(entry.path)
    except OSError:
        return
    write(os.path.join(name, ".swept"), "")


@once
def stamp(roots: tuple[str, ...]) -> str:
    """What changes when any Python file below the folders does, or this Python: sizes and times, not contents.

    What is installed is replaced as a whole, so its folder's own time and number stand for it.
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
