"""A slip of which several checks notice a consequence: one finding, the one that names the slip."""

from __future__ import annotations

import pytest

from preflight.api import check_text

SCRIPT = """export CUDA_DEVICE_MAX_CONNECTIONS=1
MODEL=(--num-layers 16 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \\
  --disable-bias-linear --swiglu --normalization RMSNorm --position-embedding-type rope)
MOE=(--num-experts 16 --moe-router-topk 2 --moe-grouped-gemm --moe-ffn-hidden-size 512 --expert-model-parallel-size 8)
TRAIN=(--micro-batch-size 1 --global-batch-size 64 --train-iters 200000 --lr 1e-4 --min-lr 1e-5 --bf16 \\
  --lr-decay-style cosine --lr-decay-iters 200000 --lr-warmup-iters 2000 --use-distributed-optimizer)
OUT=(--save /ckpt/a --load /ckpt/a --save-interval 1000 --eval-iters 10 --eval-interval 1000)
DATA=(--data-path /data/x_text_document --split 98,2,0 --tokenizer-type HuggingFaceTokenizer --tokenizer-model /tok)
torchrun --nproc_per_node 8 pretrain_gpt.py ${MODEL[@]} ${MOE[@]} ${TRAIN[@]} ${OUT[@]} ${DATA[@]}
"""
SLIPS = [
    ("--save /ckpt/a --load", "--load", "megatron/nothing-saved"),
    ("--lr-decay-iters 200000", "--lr-decay-iters 20000", "megatron/decay-far-too-early"),
    ("--lr-decay-iters 200000", "--lr-decay-iters 40000", "megatron/decay-far-too-early"),
    (
        "--moe-router-topk 2",
        "--moe-router-topk 2 --moe-router-load-balancing-type none --moe-aux-loss-coeff 0.1",
        "megatron/balance-coefficient-without-loss",
    ),
    ("--swiglu", "--swiglu --quick-geglu --glu-linear-offset 1.0", "megatron/quick-geglu-with-swiglu"),
    ("--num-experts 16", "--num-experts 12", "experts-not-divisible"),
    ("--moe-router-topk 2", "--moe-router-topk 20", "megatron/top-k-over-experts"),
    ("--num-attention-heads 16", "--num-attention-heads 15", "megatron/hidden-over-heads"),
    ("${OUT[@]}", "${OUT}", "missing-value"),
    ("${TRAIN[@]}", "${TRAIN}", "megatron/no-train-length"),
    ("${MODEL[@]}", "${MODEL}", "megatron/required-argument"),
]


def told(text: str, *, device: str = "") -> list[str]:
    settings = {"target": "megatron@0.19.0", "device": device or None}
    return [finding.rule for finding in check_text(text, name="run.sh", **settings).findings]


def test_the_script_is_sound() -> None:
    assert told(SCRIPT) == []


@pytest.mark.parametrize(("old", "new", "rule"), SLIPS)
def test_one_finding(old: str, new: str, rule: str) -> None:
    assert old in SCRIPT
    assert told(SCRIPT.replace(old, new, 1)) == [rule]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--num-experts 16", "--num-experts 1020"),
        ("--num-layers 16", "--num-layers 801 --pipeline-model-parallel-size 2"),
        ("--moe-router-topk 2", "--moe-router-topk 2000"),
    ],
)
def test_no_memory_of_sizes_that_are_refused(old: str, new: str) -> None:
    found = told(SCRIPT.replace(old, new, 1), device="h100")
    assert found and "predicted-oom" not in found


def test_memory_of_sound_sizes() -> None:
    assert told(SCRIPT.replace("--num-layers 16", "--num-layers 800"), device="h100") == ["predicted-oom"]
