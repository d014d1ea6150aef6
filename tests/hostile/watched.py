"""preflight as a process: its exit code, its output, and the time and memory that it and its children took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from clock import slower

SECONDS = 2.0
MEMORY = 500


_STARTER = """
import json, os, subprocess, sys
child = subprocess.Popen(["timeout", "-k", "1", "30", *sys.argv[2:]])
_, status, used = os.wait4(child.pid, 0)
told = [os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss // 1024]
os.write(int(sys.argv[1]), json.dumps(told).encode())
"""
"""A small process that starts another one and measures its resources. Started from a large process, a child would count
the memory of that one."""


class Done(NamedTuple):
    """How a process ended. seconds: of the processor; memory: MiB of the largest process."""

    code: int
    out: str
    err: str
    seconds: float
    memory: int

    def in_bounds(self) -> Done:
        """The same, within the promises of SECURITY.md and without an internal error."""
        assert self.code in (0, 1, 2), self
        assert "Traceback" not in self.err and "itself failed" not in self.err, self.err
        assert self.memory < MEMORY, self.memory
        assert self.seconds < SECONDS or self.seconds < 2 * SECONDS * slower(), self.seconds
        return self


def preflight(*words: str, cwd: Path, stdin: bytes | None = None) -> Done:
    """Run a command line. Fails the test if it does not end within half a minute."""
    if not hasattr(os, "wait4"):
        pytest.skip("this system does not say what a process took")
    files = tempfile.TemporaryFile
    with files() as out, files() as err, files() as given, files() as count:
        given.write(stdin or b"")
        given.seek(0)
        limited = [sys.executable, "-c", _STARTER, str(count.fileno()), sys.executable, "-m", "preflight", *words]
        env = {**os.environ, "PREFLIGHT_NO_CACHE": "1"}
        subprocess.run(
            limited, cwd=cwd, stdin=given, stdout=out, stderr=err, env=env, pass_fds=(count.fileno(),), check=True
        )
        count.seek(0)
        code, seconds, memory = json.loads(count.read())
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read(4_000_000).decode("utf-8", "replace"))
        return Done(code, *texts, seconds, memory)
