"""A program that is called, with a bound on its time, its memory and its output."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from preflight.source.record import NamedTuple

PIECE = 64 * 1024
MEMORY = 1024 * 1024 * 1024
"""Bytes that the program may allocate; files that it maps are not counted."""
MOST_COMPLAINTS = 10_000


class Ran(NamedTuple):
    """What a program left: its exit code, its output and its complaints."""

    returncode: int
    stdout: bytes
    stderr: bytes


class TooLong(Exception):
    """The program did not end in time."""


class TooMuch(Exception):
    """The program wrote more than is read."""


class _Reader(threading.Thread):
    """Reads an output up to a number of bytes; over: there was more, and the program is ended."""

    def __init__(self, stream: IO[bytes], most: int, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self._stream, self._most, self._process = stream, most, process
        self.parts: list[bytes] = []
        self.over = False

    def run(self) -> None:
        size = 0
        with contextlib.suppress(OSError, ValueError):
            while part := self._stream.read1(PIECE):  # type: ignore[attr-defined]
                if (size := size + len(part)) > self._most:
                    self.over = True
                    self._process.kill()
                    break
                self.parts.append(part)


def run_bounded(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], given: bytes, seconds: float, most: int
) -> Ran:
    """Call a program with something on its stdin. Raises TooLong, TooMuch, and OSError or ValueError where it cannot
    be started."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=dict(environment), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        _limit_memory(process.pid)
        assert process.stdin and process.stdout and process.stderr
        readers = [_Reader(process.stdout, most, process), _Reader(process.stderr, MOST_COMPLAINTS, process)]
        writer = threading.Thread(target=_write, args=(process.stdin, given), daemon=True)
        for thread in (*readers, writer):
            thread.start()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TooLong from None
        finally:
            process.kill()
            process.wait()
        for thread in (*readers, writer):
            thread.join(seconds)
    if any(reader.over for reader in readers):
        raise TooMuch
    return Ran(process.returncode, *(b"".join(reader.parts) for reader in readers))


def _write(stream: IO[bytes], given: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        stream.write(given)
    with contextlib.suppress(OSError, ValueError):
        stream.close()


def _limit_memory(process: int) -> None:
    """Bound what a process may allocate, where the system can do that for another process."""
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        resource.prlimit(process, resource.RLIMIT_DATA, (MEMORY, MEMORY))  # type: ignore[attr-defined,unused-ignore]
