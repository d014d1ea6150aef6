"""CUDA graphs move activations into pools of their own: the device holds at least as much, and more by a stated gap."""

from __future__ import annotations

import pytest

import preflight

RUN = (
    "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
    "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 16 --bf16 --lr 1e-4 "
    "--train-iters 10 --vocab-size 32000 --make-vocab-size-divisible-by 1 --tokenizer-type NullTokenizer --swiglu "
    "--normalization RMSNorm --disable-bias-linear --position-embedding-type rope --attention-dropout 0 "
    "--hidden-dropout 0 --use-distributed-optimizer --te-rng-tracker --no-check-for-nan-in-loss-and-grad"
)


def stage(*more):
    report = preflight.check_command(
        [*RUN.split(), *more], world_size=16, device="gb200", target="megatron@0.19.0", env={}
    )
    return report.jobs[0].memory.stages[0]


@pytest.mark.parametrize(
    ("more", "factor"),
    [(("--cuda-graph-impl", "transformer_engine"), 1.4), (("--cuda-graph-impl", "full_iteration"), 2.0)],
)
def test_as_much_as_without_and_more(more, factor):
    without, found = stage(), stage(*more)
    assert found.low == without.low
    gap = sum(term.high for term in found.terms if term.name == "what is not modeled")
    assert gap == pytest.approx((factor - 1) * without.allocated_peak, rel=0.01)
