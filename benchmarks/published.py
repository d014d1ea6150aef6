"""The rank of published MindFormers layouts among those found:
`python benchmarks/published.py DATA [--every N] [--worst K]`.

DATA holds corpus/mindformers and oracle/mindformers-published.jsonl. Each accepted training config is searched for the
devices of its own layout on 64 GB devices. The published layout is looked up among all candidates: its rank by
estimated time, or the reason why it is not one of them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from preflight.api import installed
from preflight.checking.checked_sources import Workspace
from preflight.job import Job
from preflight.layouts.candidate_memory import required
from preflight.layouts.candidate_step_time import step_time
from preflight.layouts.candidates import RECOMPUTE, grid
from preflight.layouts.search_inputs import Limits, space
from preflight.memory.inputs_from_plan import Missing
from preflight.run.request import Request, Target
from preflight.source.finding import Severity
from preflight.source.source_file import Source

DEVICE = "ascend-910b3"
LAYOUT = ("tensor", "pipeline", "context", "expert", "data", "virtual", "micro")


class Rank(NamedTuple):
    """The result for a config: its rank among those that fit (0: not among them) and the reason; its time relative to
    the best."""

    path: str
    rank: int
    of: int
    ratio: float
    why: str


def configs(data: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Training configs that the framework accepts."""
    for line in (data / "oracle/mindformers-published.jsonl").read_text().splitlines():
        row = json.loads(line)
        path = data / "corpus/mindformers" / row["tag"] / row["path"]
        if row["accept"] and path.exists() and not any(word in path.name for word in ("predict", "eval")):
            yield path, row


def rank(path: Path, world: int, version: str) -> Rank | None:
    """The rank of the published layout; None for a config that does not train."""
    report = Workspace(
        [Source.read(path)],
        installed(),
        Request(world_size=world, device=DEVICE, target=Target("mindformers", version)),
    ).check()
    if not report.jobs or report.jobs[0].plan.inference.enabled.raw is True:
        return None
    job, name = report.jobs[0], f"{version}/{path.name}"
    errors = sorted({f.rule for f in report.findings if f.severity is Severity.ERROR})
    try:
        where = space(job, Limits())
    except Missing as missing:
        return Rank(name, 0, 0, 0.0, f"unknown: {missing}")
    columns, _ = grid(where)
    same = published(columns, job)
    if not same.any():
        return Rank(
            name, 0, len(same), 0.0, f"rule {errors[0]}" if errors else f"no candidate: {outside(columns, job)}"
        )
    need = required(where, columns, job.cluster)
    fits = need <= (job.cluster.budget or np.inf) * 1.05
    times = step_time(where, columns, job.cluster.device).total
    chosen, more = same & fits, ""
    if not chosen.any():  # lists of operators are no candidates: the next is to recompute whole layers
        chosen, more = published(columns, job, any_recompute=True) & fits, "with more recomputation"
    if not chosen.any():
        exact = f"; rank by rank: {job.memory.verdict}" if job.memory.worst else ""
        return Rank(name, 0, int(fits.sum()), 0.0, f"memory: {need[same].min() / 2**30:.0f} GiB{exact}")
    best, own = times[fits].min(), times[chosen].min()
    return Rank(
        name,
        1 + int((times[fits] < own).sum()),
        int(fits.sum()),
        float(own / best),
        f"rule {errors[0]}" if errors else more,
    )


def published(columns: Any, job: Job, *, any_recompute: bool = False) -> Any:
    """The rows of the published layout with its recomputation, or with any when it counts layers."""
    now = job.sizes
    same = np.ones(len(columns["tensor"]), dtype=bool)
    for name in LAYOUT:
        same &= columns[name] == getattr(now, name)
    mode = columns["recompute"] == RECOMPUTE.index(now.recompute)
    return same & mode if (same & mode).any() and not any_recompute else same


def outside(columns: Any, job: Job) -> str:
    """The sizes of the published layout that no candidate has."""
    now = job.sizes
    return (
        ", ".join(f"{name} {getattr(now, name)}" for name in LAYOUT if not (columns[name] == getattr(now, name)).any())
        or f"together: {now}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every N-th config")
    parser.add_argument("--worst", type=int, default=5, help="how many to list")
    options = parser.parse_args()
    start = time.perf_counter()
    found = [
        r
        for path, row in list(configs(options.data))[:: options.every]
        if (r := rank(path, row["world"], row["tag"].lstrip("v"))) is not None
    ]
    ranked = [r for r in found if r.rank]
    print(
        f"{len(found)} configs, {len(ranked)} published layouts among those found, {time.perf_counter() - start:.1f} s"
    )
    shares = sorted(r.ratio for r in ranked)
    if shares:
        print(
            f"estimated time over the fastest layout found: median {shares[len(shares) // 2]:.2f}, "
            f"worst {shares[-1]:.2f}"
        )
        print(f"in the faster half: {sum(r.rank <= r.of / 2 for r in ranked)} of {len(ranked)}")
    for why, count in Counter(
        r.why.partition(";")[0].partition("(")[0].split(" GiB")[0][:70] for r in found if not r.rank
    ).most_common():
        print(f"{count:>4}  not found: {why}")
    for r in sorted(ranked, key=lambda r: -r.ratio)[: options.worst]:
        print(f"{r.ratio:5.2f} x the fastest, rank {r.rank} of {r.of}: {r.path} {r.why}")


if __name__ == "__main__":
    main()
