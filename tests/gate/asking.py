"""A resident checker in a separate process, and a client that can send it anything."""

from __future__ import annotations

import json
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from clock import FOREVER

READY = b"listening"


class Checker:
    """`preflight gate-serve`, with its log."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        audit: Path | None = None,
        environment: dict[str, str] | None = None,
        most: int = resource.RLIM_INFINITY,
    ) -> None:
        """most: bytes that a file may have, as on a full disk."""
        self.path, self.audit = folder / "gate.sock", audit or folder / "audit.jsonl"
        words = [
            sys.executable,
            "-m",
            "preflight",
            "gate-serve",
            "--socket",
            str(self.path),
            "--audit",
            str(self.audit),
            *options,
        ]
        self._log = (folder / "log").open("wb+")
        self.process = subprocess.Popen(words, stderr=self._log, env=environment)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (most, most))
        wait_for(lambda: READY in self.log().encode() or self.process.poll() is not None)

    def log(self) -> str:
        return Path(self._log.name).read_text(errors="replace")

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]

    def send(self, data: bytes, *, end: bool = False, seconds: float = FOREVER) -> str:
        """The response to some bytes. end: whether nothing more follows."""
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(seconds)
            caller.connect(str(self.path))
            try:
                caller.sendall(data)
                if end:
                    caller.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            return b"".join(iter(lambda: _received(caller), b"")).decode()

    def ask(self, script: str | bytes, query: str = "user=1", seconds: float = FOREVER) -> str:
        """The body of the answer to a submission."""
        body = script.encode() if isinstance(script, str) else script
        head = f"POST /gate?{query} HTTP/1.1\r\nHost: preflight\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        return self.send(head + body, seconds=seconds).partition("\r\n\r\n")[2]

    def workers(self) -> list[int]:
        found = subprocess.run(
            ["ps", "-o", "pid=,stat=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        ).stdout
        return [int(line.split()[0]) for line in found.splitlines() if "Z" not in line.split()[1]]

    def mebibytes(self) -> float:
        """Memory of the checker and its workers, shared pages counted once."""
        total = 0
        for pid in (self.process.pid, *self.workers()):
            try:
                found = re.search(r"^Pss: +(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
            except OSError:
                continue
            total += int(found[1]) if found else 0
        return total / 1024

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()


def _received(caller: socket.socket) -> bytes:
    try:
        return caller.recv(65536)
    except ConnectionError:
        return b""


def wait_for(what: object, seconds: float = FOREVER) -> bool:
    """Whether something becomes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


Start = Callable[..., Checker]
"""Starts a checker with options and an audit file."""
