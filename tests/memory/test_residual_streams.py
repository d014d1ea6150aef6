"""Hyper-connections: several residual streams between layers."""

from __future__ import annotations

import pytest
from memory_plans import make

import preflight
from preflight.memory import parameters
from preflight.memory.estimate import stage
from preflight.memory.inputs_from_plan import shape
from preflight.memory.peak import kept_layers
from preflight.run.cluster import Cluster, Device

CLUSTER = Cluster(device=Device("test", 80e9, 79e9))
MEGATRON = (4, 2, 2, 6)
ONE = 4096 * 4096
"""S·h of the plan: a sequence of 4096 tokens, a hidden size of 4096."""


def made(**changes):
    return shape(make(**changes))


def test_a_layer_keeps_the_streams_before_each_connection_and_what_goes_into_them():
    plain, several = (
        kept_layers(made(layout__stages=((1,),), **more), 0) for more in ({}, {"model__streams": MEGATRON})
    )
    more = {name: size for name, size in several.items() if name not in plain}
    maps = 2 * 12 * 4096 * (4 * 4 + 2 * 4)
    assert more == {"residual streams": 2 * 2 * 4 * ONE + maps, "outputs for residual streams": 2 * 2 * ONE}
    assert {name: several[name] for name in plain} == plain


def test_a_recomputed_layer_keeps_every_stream():
    full = {"recompute__mode": "full", "recompute__method": "uniform", "recompute__layers": 1}
    one, four = (kept_layers(made(**full, **more), 0) for more in ({}, {"model__streams": MEGATRON}))
    assert four["recomputed layers' inputs"] == 4 * one["recomputed layers' inputs"]


def test_the_mappings_are_on_every_tensor_parallel_rank():
    for tensor in (1, 4):
        sizes = {"layout__tensor": tensor, "layout__data": 8 // tensor}
        less, more = (parameters.stage(made(**sizes, **s), 0).total for s in ({}, {"model__streams": MEGATRON}))
        assert more - less == 32 * 2 * (4 * 4096 * 24 + 24 + 3)


def test_one_stream_is_none():
    assert kept_layers(made(model__streams=(1, 2, 2, 6)), 0) == kept_layers(made(), 0)


def test_recomputing_them_leaves_a_range():
    found = stage(made(model__streams=(4, 0, 2, 6), layout__stages=((2,),)), 0, CLUSTER)
    inputs = next(term for term in found.terms if term.name == "activations: residual streams")
    assert inputs.low == 0 and inputs.high > 0


RUN = (
    "pretrain_gpt.py --use-mcore-models --num-layers 4 --hidden-size 4096 --ffn-hidden-size 4096 --swiglu "
    "--num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --normalization RMSNorm "
    "--position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights "
    "--micro-batch-size 1 --global-batch-size 8 --bf16 --use-flash-attn --attention-dropout 0.0 "
    "--hidden-dropout 0.0 --tokenizer-type NullTokenizer --vocab-size 32000 --lr 1e-5 --train-iters 100"
)


def term(*more, name="activations: residual streams"):
    report = preflight.check_command([*RUN.split(), *more], world_size=8, device="910B1", target="mindspeed-llm@26.1.0")
    memory = report.jobs[0].memory
    assert memory.stages and not any("hyper" in said for said in memory.taken)
    return next((term for term in memory.stages[0].terms if term.name == name), None)


def test_mindspeed_llm_keeps_them_in_32_bits_as_well_unless_fused():
    assert term() is None
    unfused, fused = term("--enable-mhc"), term("--enable-mhc", "--use-fused-mhc")
    maps = 2 * 12 * 4096 * 24
    assert unfused.low == unfused.high == 4 * 2 * (6 * 4 * ONE) + 4 * maps
    assert fused.high == unfused.high
    assert fused.low == pytest.approx(fused.high / 3)
    assert term("--enable-mhc", "--hc-mult", "2").high < unfused.high
