"""One line a submission, appended to a file: who, what, why, with which rules."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from preflight.source.text import InputError

KEPT = ("verdict", "exit", "tool", "subject", "allocation", "override", "problem", "elapsed_ms")


def line(verdict: Mapping[str, Any], user: str) -> str:
    """A JSON object on one line."""
    rules = sorted({finding["rule"] for finding in verdict["findings"] if finding["severity"] == "error"})
    kept = {name: verdict[name] for name in KEPT}
    return json.dumps(
        {"time": _now(), "user": user, **kept, "errors": rules, "unknown": len(verdict["unknown"])}, sort_keys=True
    )


def lost(number: int, why: str, user: str | None = None) -> str:
    """The line for submissions that left none: nobody asked, or nothing could be written."""
    who = {} if user is None else {"user": user}
    return json.dumps(
        {"time": _now(), **who, "verdict": "unknown", "submissions": number, "problem": why}, sort_keys=True
    )


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def append(path: Path, text: str) -> None:
    """Append a line in one write, so that lines of several processes do not mix. Raises OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
    try:
        data = (text + "\n").encode("utf-8")
        if (written := os.write(handle, data)) != len(data):
            os.ftruncate(handle, os.fstat(handle).st_size - written)  # half a line would spoil the next one
            raise OSError("the disk is full")
    finally:
        os.close(handle)


class Trail:
    """The file of a resident checker. Lines that cannot be written are counted, and the number is written later."""

    def __init__(self, path: Path, tell: Callable[[str], None]) -> None:
        self._path, self._tell = path, tell
        self._missing = 0
        self._lock = threading.Lock()

    def open(self) -> None:
        """See whether the file can be opened. Raises InputError."""
        try:
            os.close(os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640))
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", str(self._path)) from None

    def write(self, text: str) -> str:
        """Append a line, and give what went wrong; the first time a log has a line of it, too."""
        with self._lock:
            try:
                self._catch_up()
                append(self._path, text)
            except OSError as error:
                why = error.strerror or str(error)
                if not self._missing:
                    self._tell(f"the audit file cannot be written: {why}")
                self._missing += 1
                return why
        return ""

    def _catch_up(self) -> None:
        if self._missing:
            append(self._path, lost(self._missing, "these could not be recorded"))
            self._tell(f"the audit file can be written again; {self._missing} lines are missing")
            self._missing = 0
