"""Many simultaneous submissions by hostile and ordinary users, and the behaviour of the controller."""

from __future__ import annotations

import re
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cluster import Slurm

HOSTILE: dict[str, Callable[[int], str]] = {
    "pipeline": lambda n: "a|" * 300_000 + "a\n",
    "lists": lambda n: "true && " * (400 + n) + "true\n",
    "case arms": lambda n: "case $x in\n" + "".join(f"{i}) a ;;\n" for i in range(20_000)) + "esac\n",
    "comments": lambda n: "# comment of a length that is usual\n" * 100_000,
    "substitutions": lambda n: "A=" + "$(" * 2000 + "x" + ")" * 2000 + "\n",
    "quotes": lambda n: "echo " + "\"${A:-'" * 20_000 + "\n",
}
INNOCENT, ATTACKER = 2001, 3001
LEFT = re.compile(r"Submitted batch job \d+")


@dataclass
class Storm:
    """The results. replies: per submission name, seconds, exit code, output."""

    replies: dict[str, tuple[float, int, str]] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    peak_mib: float = 0.0
    queued: set[str] = field(default_factory=set)

    def of(self, kind: str) -> list[tuple[float, int, str]]:
        return [reply for name, reply in self.replies.items() if name.startswith(kind)]

    @property
    def longest(self) -> float:
        """Seconds that any client waited."""
        return max(*self.latencies, *(seconds for seconds, _, _ in self.replies.values()))

    def told(self) -> str:
        """One line a fact, for people."""
        lines = []
        for kind in ("hostile", "innocent"):
            if not (replies := self.of(kind)):
                continue
            accepted = sum(bool(LEFT.search(text)) for _, _, text in replies)
            late = sum("timed out" in text for _, _, text in replies)
            unjudged = sum("no verdict" in text for _, _, text in replies)
            longest = max(seconds for seconds, _, _ in replies)
            lines.append(
                f"{kind}: {len(replies)}, accepted {accepted}, timed out {late}, without a verdict {unjudged}, "
                f"longest {longest:.2f} s"
            )
        waits = (
            f"{len(self.latencies)} looks, median {statistics.median(self.latencies):.2f} s, longest "
            f"{max(self.latencies):.2f} s"
        )
        return "\n".join([*lines, f"sinfo: {waits}", f"queued {len(self.queued)}, memory {self.peak_mib:.0f} MiB"])


def hostile_script(number: int, kinds: list[str] | None = None) -> str:
    """A script that takes long to check, no two alike."""
    names = kinds or list(HOSTILE)
    return f"#!/bin/bash\n# {number}\n" + HOSTILE[names[number % len(names)]](number)


def raise_storm(slurm: Slurm, hostile: list[str], innocent: list[str], *, users: int = 100) -> Storm:
    """Submit all of it at once, each as another user, and wait for the end."""
    storm, over = Storm(), threading.Event()
    watchers = [threading.Thread(target=watch, args=(slurm, storm, over)) for watch in (_look, _weigh)]
    for watcher in watchers:
        watcher.start()
    texts = {f"hostile-{i}": (text, ATTACKER + i % users) for i, text in enumerate(hostile)}
    texts |= {f"innocent-{i}": (text, INNOCENT + i) for i, text in enumerate(innocent)}
    callers = [threading.Thread(target=_submit, args=(slurm, storm, name, *what)) for name, what in _mixed(texts)]
    for name, (text, _) in texts.items():
        (slurm.folder / f"{name}.sh").write_text(text)
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    over.set()
    for watcher in watchers:
        watcher.join()
    storm.queued = set(slurm.run("squeue", "-h", "-o", "%j", seconds=60).stdout.split())
    return storm


def _mixed(texts: dict[str, tuple[str, int]]) -> list[tuple[str, tuple[str, int]]]:
    """The ordinary submissions, distributed among the hostile ones."""
    return sorted(
        texts.items(),
        key=lambda item: (int(item[0].split("-")[1]) * (5 if item[0].startswith("innocent") else 1), item[0]),
    )


def _submit(slurm: Slurm, storm: Storm, name: str, text: str, user: int) -> None:
    # not by Python, which would fork itself
    words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    words += ["sbatch", "--hold", f"--job-name={name}", str(slurm.folder / f"{name}.sh")]
    start = time.monotonic()
    ran = subprocess.run(
        words,
        capture_output=True,
        text=True,
        cwd="/",
        env=slurm.environment,
        timeout=120,
        check=False,
    )
    storm.replies[name] = (time.monotonic() - start, ran.returncode, ran.stdout + ran.stderr)


def _look(slurm: Slurm, storm: Storm, over: threading.Event) -> None:
    while not over.wait(0.1):
        start = time.monotonic()
        slurm.run("sinfo", "-h", seconds=120)
        storm.latencies.append(time.monotonic() - start)


def _weigh(slurm: Slurm, storm: Storm, over: threading.Event) -> None:
    """The memory of the checker and its workers, shared pages counted once."""
    while slurm.checker is not None and not over.wait(0.05):
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(slurm.checker.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        storm.peak_mib = max(storm.peak_mib, sum(_pss(pid) for pid in (str(slurm.checker.pid), *found)) / 1024)


def _pss(pid: str) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
