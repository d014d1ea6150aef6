"""preflight as a process: its exit code, its output, and the time and memory that it and its children took."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

SECONDS = 2.0
MEMORY = 500
SLOWER = 2.0
"""A machine that runs other things beside the tests counts more time of the processor for the same work."""


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
        assert self.seconds < SECONDS * SLOWER and self.memory < MEMORY, (self.seconds, self.memory)
        return self


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
