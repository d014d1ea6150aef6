"""preflight as a process: its exit code, its output, and the time and memory that it and its children took."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import pytest

SECONDS = 2.0
MEMORY = 500
USUAL = 0.06
"""Seconds of the processor for the work of `slower` on a machine of today with nothing else to do."""


class Done(NamedTuple):
    """How a process ended. seconds: of the processor; memory: MiB of the largest process."""

    code: int
    out: str
    err: str
    seconds: float
    memory: int

    def in_bounds(self) -> Done:
        """The same, within what SECURITY.md promises and without a fault of preflight's own."""
        assert self.code in (0, 1, 2), self
        assert "Traceback" not in self.err and "itself failed" not in self.err, self.err
        assert self.memory < MEMORY, self.memory
        assert self.seconds < SECONDS or self.seconds < SECONDS * slower(), (self.seconds, slower())
        return self


def slower() -> float:
    """How many times more time of the processor this machine counts for the same work than usual,
    with others at work; 1 at least."""
    longest = 0.0
    for _ in range(20):
        start, total = time.thread_time(), 0
        for number in range(1_000_000):
            total += number * number % 7
        longest = max(longest, time.thread_time() - start)
    return max(1.0, longest / USUAL)


def preflight(*words: str, cwd: Path, stdin: bytes | None = None) -> Done:
    """Run a command line. Fails the test where it does not end in half a minute."""
    if not hasattr(os, "wait4"):
        pytest.skip("this system does not say what a process took")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as given:
        given.write(stdin or b"")
        given.seek(0)
        limited = ["timeout", "-k", "1", "30", sys.executable, "-m", "preflight", *words]
        running = subprocess.Popen(
            limited, cwd=cwd, stdin=given, stdout=out, stderr=err, env={**os.environ, "PREFLIGHT_NO_CACHE": "1"}
        )
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read(4_000_000).decode("utf-8", "replace"))
        return Done(running.returncode, *texts, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024)
