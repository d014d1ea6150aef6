"""The gate under load. `python benchmarks/gate.py soak` sends mixed submissions through the resident checker; `latency`
compares sbatch with and without the gate in a real Slurm (as root, Slurm installed). Bounded in number and time;
traffic stays on this machine.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from submissions import submission

ROOT = Path(__file__).parent.parent


class Client(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("preflight", timeout=30)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(str(self.path))


def ask(path: Path, query: str, body: bytes) -> dict[str, object]:
    """The verdict on a submission."""
    client = Client(path)
    client.request("POST", f"/gate?{query}", body, {"Accept": "application/json"})
    answer: dict[str, object] = json.loads(client.getresponse().read())
    client.close()
    return answer


def memory(pid: int) -> dict[str, float]:
    """Resident MiB of the server and of its workers together."""
    workers = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split()

    def resident(process: str | int) -> float:
        text = Path(f"/proc/{process}/status").read_text()
        return next(int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmRSS"))

    return {"server": resident(pid), **{f"worker {i}": resident(worker) for i, worker in enumerate(workers, 1)}}


def soak(number: int, clients: int, seconds: float, workers: int) -> None:
    """Send this number of submissions, or as many as fit in the time; print the replies and the memory use."""
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder) / "gate.sock", Path(folder) / "audit.jsonl"
        words = ["gate-serve", "--socket", str(path), "--audit", str(log), "--workers", str(workers), "--timeout", "5"]
        server = subprocess.Popen([sys.executable, "-m", "preflight", *words], stderr=subprocess.PIPE)
        assert server.stderr is not None
        server.stderr.readline()
        try:
            for i in range(200):
                ask(path, *submission(10_000_000 + i))
            samples = [memory(server.pid)]
            times, said = _all(path, number, clients, seconds, lambda: samples.append(memory(server.pid)))
            samples.append(memory(server.pid))
            _tell(times, said, samples, len(log.read_text().splitlines()) - 200)
        finally:
            server.terminate()
            server.wait(20)


def _all(
    path: Path, number: int, clients: int, seconds: float, sample: Callable[[], None]
) -> tuple[list[float], Counter[str]]:
    counter, end = itertools.count(1), time.monotonic() + seconds
    times: list[float] = []
    said: Counter[str] = Counter()

    def work() -> None:
        while (mine := next(counter)) <= number and time.monotonic() < end:
            start = time.monotonic()
            answer = ask(path, *submission(mine))
            times.append(time.monotonic() - start)
            said[f"{answer['verdict']}, exit {answer['exit']}"] += 1
            if mine % 1000 == 0:
                sample()

    threads = [threading.Thread(target=work) for _ in range(clients)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(times)} submissions in {time.monotonic() - start:.0f} s")
    return times, said


def _tell(times: list[float], said: Counter[str], samples: list[dict[str, float]], audited: int) -> None:
    print("answers: " + ", ".join(f"{word}: {count}" for word, count in sorted(said.items())))
    print(f"audit lines: {audited}; submissions without an answer: {len(times) - sum(said.values())}")
    ordered = sorted(times)
    print(
        "ms: "
        + ", ".join(
            f"{name} {1000 * ordered[min(int(len(ordered) * share), len(ordered) - 1)]:.0f}"
            for name, share in PARTS.items()
        )
    )
    print("resident MiB of server and workers, every 1000 submissions:")
    for sample in samples:
        print("  " + ", ".join(f"{size:.1f}" for size in sample.values()))


PARTS = {"median": 0.5, "p90": 0.9, "p99": 0.99, "longest": 1.0}


def latency(rounds: int) -> None:
    """sbatch with no plugin, with an empty one, and with the gate: medians of single calls,
    and the last of 20 at once."""
    sys.path.insert(0, str(ROOT / "tests/slurm"))
    from conftest import CONF, Slurm  # type: ignore[import-not-found]
    from test_slurm import BAD, GOOD  # type: ignore[import-not-found]

    plain: tuple[float, float] | None = None
    for name in ("no plugin", "empty Lua", "gate, good script", "gate, bad script", "client gate, good script"):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            slurm = Slurm(
                Path(folder),
                CONF.replace("JobSubmitPlugins=lua\n", "")
                if name in ("no plugin", "client gate, good script")
                else CONF,
            )
            try:
                slurm.start()
                if name == "empty Lua":
                    empty = (
                        "function slurm_job_submit(a,b,c) return slurm.SUCCESS end\n"
                        "function slurm_job_modify(a,b,c,d) return slurm.SUCCESS end\n"
                    )
                    (slurm.folder / "job_submit.lua").write_text(empty + "return slurm.SUCCESS\n")
                    slurm.settle()
                slurm.start_checker()
                (slurm.folder / "job.sh").write_text(BAD if "bad" in name else GOOD)
                run = slurm.client() if name.startswith("client") else slurm.run
                measured = _measured(run, slurm, rounds)
            finally:
                slurm.stop()
        plain = plain or measured
        ratios = " ".join(f"{own / base:6.2f}" for own, base in zip(measured, plain, strict=True))
        print(
            (
                f"{name:<26} x no plugin, one by one and 20 at once: {ratios}   (ms {1000 * measured[0]:.0f}, "
                f"{1000 * measured[1]:.0f})"
            ),
            flush=True,
        )


def _measured(run: object, slurm: object, rounds: int) -> tuple[float, float]:
    def once() -> float:
        start = time.monotonic()
        run("sbatch", "--hold", "job.sh")  # type: ignore[operator]
        return time.monotonic() - start

    def together() -> Iterator[float]:
        for _ in range(3):
            start = time.monotonic()
            threads = [threading.Thread(target=once) for _ in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            yield time.monotonic() - start

    once()
    return statistics.median(once() for _ in range(rounds)), statistics.median(together())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["soak", "latency"])
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    soak(given.number, given.clients, given.seconds, given.workers) if given.what == "soak" else latency(given.rounds)
