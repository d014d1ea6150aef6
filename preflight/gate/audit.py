"""One line per submission, appended to a file: user, job, reason, rules."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from preflight.source.source_file import InputError
from preflight.source.typing_without_import import Any
from preflight.source.writing import open_to_append

PATIENCE = 0.2
"""Seconds that an answer waits for its line to be written; if the disk hangs, only the first answer waits."""
OPENING, CLOSING = 5.0, 1.0
MOST_WAITING = 2000
"""Lines that wait for a hanging disk; more are only counted."""
HANGS = "does not respond"

KEPT = ("verdict", "exit", "tool", "subject", "allocation", "override", "problem", "elapsed_ms")


def line(verdict: Mapping[str, Any], user: str) -> str:
    """A JSON object on one line."""
    rules = sorted({finding["rule"] for finding in verdict["findings"] if finding["severity"] == "error"})
    kept = {name: verdict[name] for name in KEPT}
    return json.dumps(
        {"time": _now(), "user": user, **kept, "errors": rules, "unknown": len(verdict["unknown"])}, sort_keys=True
    )


def lost(number: int, why: str, user: str | None = None) -> str:
    """The line for submissions without a separate line: the gate was not queried, or nothing could be written."""
    who = {} if user is None else {"user": user}
    return json.dumps(
        {"time": _now(), **who, "verdict": "unknown", "submissions": number, "problem": why}, sort_keys=True
    )


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def append(path: Path, text: str) -> None:
    """Append a line in one write, so that lines of several processes do not mix.

    Never waits for a pipe. Raises OSError, also for anything but a regular file: a link, a pipe, a folder.
    """
    try:
        handle = open_to_append(path)
    except InputError as error:
        raise OSError(error.message) from None
    try:
        data = (text + "\n").encode("utf-8")
        if (written := os.write(handle, data)) != len(data):
            with contextlib.suppress(OSError):
                os.ftruncate(handle, os.fstat(handle).st_size - written)  # a partial line would corrupt the next one
            raise OSError("the disk is full")
    finally:
        os.close(handle)


class _Line:
    """A line to be written to the file. why: the failure; dropped: it is no longer needed."""

    __slots__ = ("done", "dropped", "text", "why")

    def __init__(self, text: str) -> None:
        self.text, self.why, self.dropped = text, "", False
        self.done = threading.Event()


class Trail:
    """The audit file of a resident checker. A separate thread writes, so that no answer waits long for a disk. Lines
    that cannot be written are counted, and the number is written later. `tell` receives a line for the service log when
    this starts and ends.
    """

    def __init__(self, path: Path, tell: Callable[[str], None], patience: float = PATIENCE) -> None:
        self._path, self._tell, self._patience = path, tell, patience
        self._missing = 0
        self._hangs = False
        self._lines: queue.Queue[_Line | None] = queue.Queue(MOST_WAITING)
        self._lock = threading.Lock()
        self._writer = threading.Thread(target=self._write_all, daemon=True)
        self._writer.start()

    def open(self) -> None:
        """Check that the file can be opened. Raises InputError."""
        why = self._pass_on(_Line(""), OPENING)
        if why:
            raise InputError(f"cannot be written: {why}", str(self._path))

    def write(self, text: str, *, needed: bool = False) -> str:
        """Append a line, and return the failure. needed: the answer is valid only with this line, so the line is not
        written later, and a hanging disk is a failure; other lines are written as soon as possible.
        """
        if self._hangs:
            if not needed:
                self._pass_on(_Line(text), 0)
            return HANGS
        line = _Line(text)
        why = self._pass_on(line, self._patience)
        line.dropped = needed and why == HANGS
        return why

    def close(self) -> None:
        """Write the waiting lines, if that does not take long."""
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(None)
            self._writer.join(CLOSING)

    def _pass_on(self, line: _Line, seconds: float) -> str:
        """Pass a line to the writer, and wait for it up to a number of seconds."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            with self._lock:
                self._missing += 1
            return HANGS
        if line.done.wait(seconds):
            return line.why
        with self._lock:
            began, self._hangs = not self._hangs, True
        if began:
            threading.Thread(target=self._tell, args=(f"the audit file {HANGS}",), daemon=True).start()
        return HANGS

    def _write_all(self) -> None:
        """The loop of the writer thread."""
        while (line := self._lines.get()) is not None:
            if not line.dropped:
                self._write(line)
            line.done.set()
            if self._hangs and self._lines.empty():
                self._hangs = False
                self._tell("the audit file responds again")

    def _write(self, line: _Line) -> None:
        with self._lock:
            missing = self._missing
        try:
            if not line.text:
                os.close(open_to_append(self._path))
                return
            before = f"{lost(missing, 'some submissions could not be recorded')}\n" if missing else ""
            append(self._path, before + line.text)  # both or none: a nearly full disk may still accept a short line
        except (OSError, InputError) as error:
            line.why = error.message if isinstance(error, InputError) else error.strerror or str(error)
            if line.text:
                self._count(line.why)
            return
        if missing:
            with self._lock:
                self._missing -= missing
            self._tell(f"the audit file can be written again; {missing} lines are missing")

    def _count(self, why: str) -> None:
        with self._lock:
            first = not self._missing
            self._missing += 1
        if first:
            self._tell(f"the audit file cannot be written: {why}")
