"""Launchers compared with the job's allocation: nodes, tasks, devices per node, visible devices."""

from __future__ import annotations

import pytest

from preflight.api import check_text

OPTIONS = (
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 "
    "--micro-batch-size 1 --global-batch-size 64 --train-iters 100 --lr 1e-4 --min-lr 1e-5 --bf16 --vocab-size 32000 "
    "--tokenizer-type NullTokenizer --mock-data --save ckpt --save-interval 50 --split 98,1,1"
)
RENDEZVOUS = "--rdzv-backend c10d --rdzv-endpoint node1:29500"
BEYOND, TASKS, SIZES = "launcher-beyond-allocation", "launcher-per-task", "world-sizes-disagree"
CASES = {
    "more nodes than asked for": ("#SBATCH --nodes=2 --ntasks-per-node=1", "srun torchrun --nnodes 4", 8, BEYOND),
    "twice the nodes": ("#SBATCH -N 4 --ntasks-per-node=1 --gpus-per-node=8", "srun torchrun --nnodes 8", 8, BEYOND),
    "half the devices of a node": ("#SBATCH -N 2 --gpus-per-node=4", "srun torchrun --nnodes 2", 8, BEYOND),
    "generic resources": ("#SBATCH -N 1 --gres=gpu:4", "torchrun --nnodes 1", 8, BEYOND),
    "devices of all nodes": ("#SBATCH -N 2 -G 8 --ntasks-per-node=1", "srun torchrun --nnodes 2", 8, BEYOND),
    "one task for two nodes": ("#SBATCH -N 2 --ntasks=1 --gpus-per-node=8", "srun torchrun --nnodes 2", 8, BEYOND),
    "a task for each device": ("#SBATCH -N 2 --ntasks-per-node=8", "srun torchrun --nnodes 2", 8, TASKS),
    "each node for itself": ("#SBATCH -N 2 --ntasks-per-node=1", "srun torchrun --nnodes 1", 8, TASKS),
    "fewer processes than devices": (
        "#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8",
        "srun torchrun --nnodes 2",
        4,
        SIZES,
    ),
    "fewer visible devices": ("export CUDA_VISIBLE_DEVICES=0,1,2,3", "torchrun --nnodes 1", 8, BEYOND),
    "fewer visible devices, as a list of one": ("export CUDA_VISIBLE_DEVICES=0", "torchrun --nnodes 1", 2, BEYOND),
    "as asked for": ("#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8", "srun torchrun --nnodes 2", 8, ""),
    "some of the visible devices": ("export CUDA_VISIBLE_DEVICES=0,1,2,3", "torchrun --nnodes 1", 4, ""),
}


@pytest.mark.parametrize(("head", "launcher", "processes", "rule"), CASES.values(), ids=CASES)
def test_sizes_agree(head: str, launcher: str, processes: int, rule: str) -> None:
    meeting = "" if launcher.endswith(" 1") else RENDEZVOUS
    text = f"#!/bin/bash\n{head}\n{launcher} --nproc_per_node {processes} {meeting} pretrain_gpt.py {OPTIONS}\n"
    report = check_text(text, name="run.sh", target="megatron@0.17.0")
    found = {finding.rule for finding in report.findings if str(finding.severity) != "note"}
    assert (rule in found) if rule else not found
