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
from urllib.parse import urlencode

ROOT = Path(__file__).parent.parent
SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=run-{number}
#SBATCH -N{nodes}
#SBATCH --gpus-per-node=8
# submission {number}
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP={tensor}
PP={pipeline}
ARGS="
  --num-layers {layers} --hidden-size 4096 --num-attention-heads 32 --bf16 --seq-length 4096 --max-position-embeddings 4096
  --micro-batch-size 1 --global-batch-size {batch} --lr 1e-4 --train-iters {number}0
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP
"
srun torchrun --nnodes {launched} --nproc-per-node 8 pretrain_gpt.py $ARGS {more}
"""
MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: run-{number}}}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: {nodes}
      template:
        spec:
          containers:
          - name: pytorch
            command: [bash, -c]
            args:
            - |
{script}
            resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""


def submission(number: int) -> tuple[str, bytes]:
    """A query and a text, no two alike: sound and faulty scripts, placeholders, other jobs, manifests, noise."""
    nodes = 1 << (number % 5)
    facts = {
        "nodes": nodes,
        "launched": nodes,
        "tensor": (1, 2, 3, 4, 8, 5)[number % 6],
        "pipeline": (1, 2, 4)[number % 3],
        "layers": 24 + number % 17,
    }
    facts |= {"batch": 8 * (1 + number % 64), "number": number, "more": '"$@"' if number % 7 == 0 else ""}
    if number % 5 == 1:
        facts |= {"launched": "$SLURM_NNODES", "tensor": "${TENSOR:?}", "batch": "$1"}
    script = SCRIPT.format(**facts)
    query = urlencode(
        {
            "user": number % 50,
            "name": f"job {number}",
            **({"nodes": nodes, "devices_per_node": 8} if number % 2 else {}),
        }
    )
    kind = number % 20
    if kind == 17:
        return query, f"#!/bin/bash\necho {number}\npython eval.py --batch-size {number}\n".encode()
    if kind == 18:
        inner = "\n".join(" " * 14 + line for line in script.splitlines())
        return query + "&kind=manifest", MANIFEST.format(number=number, nodes=nodes, script=inner).encode()
    if kind == 19:
        return query, (script * (1 + number % 20))[: 997 * (1 + number % 40)].encode()
    return query, script.encode()


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
    """Send so many submissions, or as many as fit in the time; print what came back and what memory did."""
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
