"""The cost of reading a program: `python benchmarks/programs.py CHECKOUT... [--runs N]`.

CHECKOUT is a folder with Megatron-LM as it is checked out. Measures processor time of whole processes (user and system)
as medians: a launch script without source, then the same in the checkout: the first check with an empty cache, one
with another learning rate, one with another number of nodes, one with another layout. The bars are 1,500 ms more than
without source for the first check, and 100 ms for the others.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path

from speed import ENVIRONMENT, PREFLIGHT, Work, once

SCRIPT = """\
#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nproc_per_node 8 --nnodes {nodes} --master_addr $1 --master_port 6000 pretrain_gpt.py \\
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 \\
    --micro-batch-size 1 --global-batch-size 512 --train-iters 500000 --bf16 --lr {rate} --min-lr 6.0e-6 \\
    --lr-decay-style cosine --weight-decay 0.1 --adam-beta2 0.95 --clip-grad 1.0 --lr-warmup-fraction .001 \\
    --tensor-model-parallel-size {tensor} --pipeline-model-parallel-size 2 --sequence-parallel \\
    --use-distributed-optimizer --num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 4 \\
    --moe-token-dispatcher-type alltoall --swiglu --disable-bias-linear --normalization RMSNorm \\
    --position-embedding-type rope --data-path /data/corpus_text_document --vocab-file /data/vocab.json \\
    --merge-file /data/merges.txt --split 949,50,1 --save /ckpt --save-interval 1000
"""
USUAL = {"nodes": 4, "rate": "3e-4", "tensor": 4}
STEPS = {
    "first": {},
    "another rate": {"rate": "2e-4"},
    "another size": {"rate": "2e-4", "nodes": 8},
    "another layout": {"rate": "2e-4", "tensor": 2},
}
BARS = {"first": 1500}
BAR = 100


def measured(checkout: Path, folder: Path) -> dict[str, float]:
    """Milliseconds of each check of one checkout, and of one without source."""
    kept = {**ENVIRONMENT, "PREFLIGHT_CACHE_DIR": str(folder / "cache")}
    path = folder / "run.sh"
    argv = [*PREFLIGHT, "check", str(path)]
    found = {}
    for rate in ("1e-4", "3e-4"):  # the first also makes the tables that any check makes
        path.write_text(SCRIPT.format(**{**USUAL, "rate": rate}), encoding="utf-8")
        found["no source"] = once(Work(argv, 1, kept))[0]
    (folder / "preflight.toml").write_text(f"program = {json.dumps(str(checkout))}\n", encoding="utf-8")
    for name, change in STEPS.items():
        path.write_text(SCRIPT.format(**{**USUAL, **change}), encoding="utf-8")
        found[name] = once(Work(argv, 1, kept))[0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    for checkout in asked.checkouts:
        rows = []
        for _ in range(asked.runs):
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measured(checkout.absolute(), Path(folder)))
        times = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
        print(f"{os.fspath(checkout)}: {times['no source']:.0f} ms without source")
        for name in STEPS:
            more, bar = times[name] - times["no source"], BARS.get(name, BAR)
            print(f"    {name:16} {more:+6.0f} ms, bar {bar}{'  MISSED' if more > bar else ''}")


if __name__ == "__main__":
    main()
