"""Checks again whenever a file changes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

PAUSE = 0.3


def watch(check: Callable[[], int], files: Callable[[], Iterable[Path]]) -> int:
    """Run a check now and after every change of the files, until it is interrupted; the last exit code."""
    code = 0
    try:
        while True:
            before = _stamps(files())
            code = check()
            print("preflight: watching, Ctrl-C ends it", file=sys.stderr, flush=True)
            while _stamps(files()) == before:
                time.sleep(PAUSE)
            if sys.stdout.isatty():
                print("\x1b[2J\x1b[H", end="")
    except KeyboardInterrupt:
        return code


def _stamps(files: Iterable[Path]) -> dict[Path, tuple[int, int] | None]:
    return {path: _stamp(path) for path in files}


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
