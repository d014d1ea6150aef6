"""Hybrid models: layers of one operator each, Mamba, attention, an MLP or experts."""

from __future__ import annotations

import pytest
from memory_plans import make

import preflight
from preflight.memory import estimate
from preflight.memory.inputs_from_plan import Missing, shape
from preflight.memory.parameters import model
from preflight.run.cluster import Cluster

PATTERN = "M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-"
RECORDED = (
    "pretrain_mamba.py --bf16 --group-query-attention --num-query-groups 8 --hidden-size 1024 --num-layers 44 "
    f"--hybrid-override-pattern {PATTERN} --is-hybrid-model --num-attention-heads 16 --seq-length 1024 "
    "--max-position-embeddings 1024 --micro-batch-size 4 --global-batch-size 32 --lr 0.00015 --train-iters 50 "
    "--no-gradient-accumulation-fusion --tensor-model-parallel-size 2 --transformer-impl transformer_engine "
    "--use-distributed-optimizer --vocab-file vocab.json --merge-file merges.txt --attention-softmax-in-fp32"
)
"""tests/functional_tests/test_cases/hybrid/hybrid_mr_mcore_te_tp2_pp1_* of Megatron-LM, eight devices."""


def recorded(*more, device="h100", text=RECORDED):
    report = preflight.check_command(
        [*text.split(), *more],
        world_size=8,
        device=device,
        target="megatron@0.14.0",
        env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    )
    return report.jobs[0]


@pytest.mark.parametrize(
    ("more", "device", "steady", "peak"),
    [
        (("--attention-backend", "unfused"), "h100", 1.917, 5.908),
        (("--attention-backend", "fused", "--context-parallel-size", "4"), "h100", 1.917, 2.744),
        (("--attention-backend", "fused", "--context-parallel-size", "4"), "a100-80", 1.917, 2.743),
    ],
)
def test_recorded_runs_are_met_within_two_percent(more, device, steady, peak):
    stage = recorded(*more, device=device).memory.stages[-1]
    assert stage.steady / 1e9 == pytest.approx(steady, rel=0.02)
    assert stage.allocated_peak / 1e9 == pytest.approx(peak, rel=0.02)


def hybrid(parts, **changes):
    sizes = {"model__mamba": (128, 64, 128, 8), "layout__stages": ((len(parts),),), "model__parts": parts}
    return make(**{**sizes, **changes})


def test_a_mamba_layer_has_the_parameters_of_its_projections_convolution_and_heads():
    one, two = (model(shape(hybrid(parts))) for parts in ("M", "MM"))
    h, d, bc, heads = 4096, 8192, 2 * 8 * 128, 128
    assert two - one == h * (2 * d + bc + heads) + d * h + 5 * (d + bc) + 3 * heads + d + h


def test_an_attention_and_an_mlp_layer_make_a_plain_one():
    assert model(shape(hybrid("*-"))) == model(shape(make(layout__stages=((1,),))))
    kept = estimate(hybrid("*-"), Cluster()).worst, estimate(make(layout__stages=((1,),)), Cluster()).worst
    assert kept[0].allocated_peak == kept[1].allocated_peak


def test_experts_of_a_hybrid_model_are_where_its_pattern_has_them():
    experts = {"model__experts": 8, "model__top_k": 2, "model__expert_ffn": 1024}
    one, two = (model(shape(hybrid(parts, **experts))) for parts in ("M-E", "M-EE"))
    assert two - one == 8 * 3 * 4096 * 1024 + 4096 * 8 + 4096


def test_a_pattern_of_another_length_than_the_stages_is_no_usable_model():
    with pytest.raises(Missing, match="pattern"):
        shape(hybrid("MM", layout__stages=((3,),)))


def test_layers_without_a_formula_stay_a_stated_gap():
    text = RECORDED.replace(PATTERN, "MG" * 22)
    assert any("hybrid model" in taken for taken in recorded(text=text).memory.taken)
    assert not recorded().memory.taken


def test_the_step_time_of_a_hybrid_model_stays_unknown():
    assert "hybrid" in preflight.estimate_step_time(recorded()).unknown[0]


def test_expert_layers_without_experts_are_no_usable_model():
    with pytest.raises(Missing, match="experts"):
        shape(hybrid("M-E"))
    text = RECORDED.replace(PATTERN, "ME" * 22)
    report = preflight.check_command(text.split(), world_size=8, device="h100", target="megatron@0.14.0")
    assert not report.crashes and report.jobs[0].memory.verdict == "unknown"
