"""Runs one target for a time: bytes in, finds out. A find is an exception, a run of over two seconds,
or too much memory."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from .choices import Choices
from .targets import TARGETS

SECONDS = 2.0
WHOLE_SECONDS = {"functions": 12.0, "programs": 10.0}
"""Limits of targets that run more than a part."""
MEMORY = 500 * 1024 * 1024
LONGEST = 1500


class Hang(BaseException):
    """One input took more seconds of the processor than its target has."""


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hang


class Session:
    """Counts executions of a target, keeps the first input of each kind of finding, and the slowest input if it is
    slow."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.run = name, folder, TARGETS[name][1]
        self.count, self.finds, self.written, self.slowest = 0, 0, time.monotonic(), 0.0
        self._seen: set[str] = set()
        signal.signal(signal.SIGVTALRM, _hang)
        self.run(Choices(b""))
        size = (
            int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            if Path("/proc/self/statm").exists()
            else 0
        )
        if size:
            resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))

    def once(self, data: bytes) -> None:
        """One execution."""
        most = WHOLE_SECONDS.get(self.name, SECONDS)
        signal.setitimer(signal.ITIMER_VIRTUAL, most)
        started, many = time.process_time(), None
        try:
            many = self.run(Choices(data))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            self._find(data, error)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if (taken := time.process_time() - started) > self.slowest:
            self.slowest = taken
            if taken > most / 4:
                (self.folder / f"{self.name}-slowest-{os.getpid()}.bin").write_bytes(data)
        self.count += 1 if many is None else many
        if time.monotonic() - self.written > 1:
            self.save()

    def _find(self, data: bytes, error: BaseException) -> None:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        frames = [
            line.strip()
            for line in text.splitlines()
            if line.strip().startswith("File ") and ("preflight" in line or "/rules/" in line)
        ]
        kind = f"{type(error).__name__} {frames[-1] if frames and not isinstance(error, Hang) else frames[-3:]}"
        self.finds += 1
        if kind not in self._seen:
            self._seen.add(kind)
            stem = self.folder / f"{self.name}-{len(self._seen)}-{os.getpid()}"
            stem.with_suffix(".bin").write_bytes(data)
            stem.with_suffix(".txt").write_text(f"{kind}\n{text}", encoding="utf-8", errors="backslashreplace")

    def save(self) -> None:
        """The file from which the parent reads the progress."""
        self.written = time.monotonic()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        state = {
            "executions": self.count,
            "finds": self.finds,
            "kinds": len(self._seen),
            "slowest": round(self.slowest, 3),
            "peak_mib": peak,
        }
        (self.folder / f"{self.name}.{os.getpid()}.json").write_text(json.dumps(state))


def at_random(name: str, folder: Path, seconds: float, seed: int) -> None:
    """Bytes without guidance: fast, the same for the same seed."""
    session, random, end = Session(name, folder), Random(seed), time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20):
            session.once(random.randbytes(min(LONGEST, int(random.expovariate(1 / 150)) + 8)))
    session.save()


def led_by_coverage(name: str, folder: Path, seconds: float, seed: int) -> None:
    """Bytes as libFuzzer breeds them."""
    import atheris

    session = Session(name, folder)
    corpus = folder / f"corpus-{name}"
    corpus.mkdir(exist_ok=True)
    words: list[Any] = [sys.argv[0], str(corpus), f"-max_len={LONGEST}", f"-seed={seed}"]
    words += [
        "-timeout=600",
        "-rss_limit_mb=0",
        "-verbosity=0",
        "-handle_segv=0",
        "-detect_leaks=0",
        f"-artifact_prefix={folder}/",
    ]
    end = time.monotonic() + seconds

    def once(data: bytes) -> None:
        session.once(data)
        if time.monotonic() > end:  # libFuzzer's own way to end looks like a crash
            session.save()
            os._exit(0)

    atheris.Setup(words, once)
    atheris.Fuzz()
