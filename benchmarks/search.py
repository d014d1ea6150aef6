"""The speed of the layout search: `python benchmarks/search.py`. A 61-layer mixture of 256 experts on 1,024 and 16,384
devices.

Prints seconds for all candidates at once, and the ratio to a plain Python loop that asks the memory model for the first
and last rank and the time model for each candidate, extrapolated from a sample.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

import preflight
from preflight.api import installed
from preflight.checking.checked_sources import Workspace
from preflight.fix.trial_edits import Attempts
from preflight.layouts.candidate_memory import required
from preflight.layouts.candidate_step_time import step_time
from preflight.layouts.candidates import Space, grid, sizes
from preflight.layouts.search import search
from preflight.layouts.search_inputs import Limits, space
from preflight.memory.estimate import stage
from preflight.run.request import Request, Target
from preflight.source.source_file import Source

SAMPLE = 200
SCRIPT = """export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nnodes {nodes} --nproc-per-node 8 pretrain_gpt.py --num-layers 61 --hidden-size 7168 \\
  --ffn-hidden-size 18432 --num-attention-heads 128 \\
  --kv-channels 128 --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048 \\
  --moe-layer-freq "([0]*3+[1]*58)" --moe-grouped-gemm \\
  --moe-token-dispatcher-type alltoall --swiglu --normalization RMSNorm --disable-bias-linear \\
  --untie-embeddings-and-output-weights \\
  --seq-length 4096 --max-position-embeddings 4096 --position-embedding-type rope --vocab-size 129280 \\
  --tokenizer-type NullTokenizer --mock-data \\
  --micro-batch-size 1 --global-batch-size {batch} --train-iters 100 --lr 1e-4 --bf16 --use-distributed-optimizer \\
  --sequence-parallel \\
  --tensor-model-parallel-size 8 --expert-model-parallel-size 32 --expert-tensor-parallel-size 1
"""


def measure(world: int) -> None:
    batch = 15360 if world < 10_000 else 16384 * 4
    text = SCRIPT.format(nodes=world // 8, batch=batch)
    workspace = Workspace(
        [Source(text, "train.sh")], installed(), Request(device="h100", target=Target("megatron", "0.20.0"))
    )
    report = workspace.check()
    job = report.jobs[0]
    assert job.arguments.relayout is not None
    where = space(job, Limits())
    start = time.perf_counter()
    columns, _ = grid(where)
    required(where, columns, job.cluster)
    step_time(where, columns, job.cluster.device)
    fast = time.perf_counter() - start
    slow = loop(where, columns, job) * len(columns["tensor"]) / SAMPLE
    start = time.perf_counter()
    found = search(job, job.arguments.relayout, Attempts(workspace, report, job))
    whole = time.perf_counter() - start
    print(
        (
            f"{world} devices: {found.considered} layouts in {fast:.2f} s, {slow / fast:.0f} times as fast as a "
            f"loop ({slow:.0f} s); "
        ),
        end="",
    )
    print(
        f"with the proof of the {len(found.layouts)} that are shown {whole:.2f} s; "
        f"best {found.layouts[0].sizes if found.layouts else found.rejected}"
    )


def loop(where: Space, columns: object, job: preflight.Job) -> float:
    """Seconds for a sample of candidates one by one."""
    rows = np.random.default_rng(0).choice(len(columns["tensor"]), SAMPLE)  # type: ignore[index]
    start = time.perf_counter()
    for row in rows:
        wanted = sizes(columns, int(row))  # type: ignore[arg-type]
        layers = -(-sum(map(sum, where.shape.stages)) // (wanted.pipeline * wanted.virtual))
        one = replace(
            where.shape, stages=((layers,) * wanted.pipeline,) * wanted.virtual, tensor=wanted.tensor,
            pipeline=wanted.pipeline, context=wanted.context,
            expert=wanted.expert, expert_tensor=wanted.expert_tensor, data=wanted.data,
            sequence_parallel=wanted.sequence_parallel, micro=wanted.micro,
            count=wanted.micro_batches, group=wanted.pipeline, recompute=wanted.recompute, method="uniform",
            recompute_layers=1,
        )  # fmt: skip
        for rank in {0, wanted.pipeline - 1}:
            stage(one, rank, job.cluster)
        step_time(where, {name: values[[row]] for name, values in columns.items()}, job.cluster.device)  # type: ignore[attr-defined]
    return time.perf_counter() - start


if __name__ == "__main__":
    for devices in (1024, 16384):
        measure(devices)
