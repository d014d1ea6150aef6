"""Memory that remains between two steps in addition to weights, gradients and states."""

from __future__ import annotations

import pytest
from memory_plans import make

import preflight
from preflight.memory import activations, flops, parameters, peak, static_memory
from preflight.memory.estimate import stage
from preflight.memory.inputs_from_plan import shape
from preflight.memory.peak import recomputed
from preflight.run.cluster import Cluster, Device

CLUSTER = Cluster(device=Device("test", 80e9, 79e9))
PIPELINE = {"layout__pipeline": 2, "layout__stages": ((8, 8), (8, 8)), "batch__count": 8}
MIXTURE = {"model__experts": 8, "model__expert_ffn": 1024, "model__expert_layers": (False,) + (True,) * 31}


def placeholder(index=0, **changes):
    found = [
        term
        for term in stage(shape(make(**changes)), index, CLUSTER).terms
        if term.name == "weight gradient placeholders"
    ]
    return found[0] if found else None


def test_one_placeholder_for_each_shape_of_a_linear():
    qkv, projection, fc1, fc2, output = 3 * 4096**2, 4096**2, 2 * 11008 * 4096, 11008 * 4096, 32000 * 4096
    term = placeholder()
    assert term.high == 2 * (qkv + projection + fc1 + fc2 + output)
    assert term.low == 0, "older libraries keep none"


def test_experts_of_one_shape_share_a_placeholder():
    eight, sixteen = placeholder(**MIXTURE), placeholder(**{**MIXTURE, "model__experts": 16})
    assert eight.high == sixteen.high
    assert eight.high - placeholder().high == 2 * (2 * 1024 * 4096 + 1024 * 4096)


def test_a_stage_has_placeholders_of_its_own_linears():
    assert placeholder(1, **PIPELINE).high - placeholder(0, **PIPELINE).high == 2 * 32000 * 4096


@pytest.mark.parametrize(
    "changes",
    [{"optimizer__gradient_fusion": False}, {"model__kernels": "torch-npu"}, {"model__lora_targets": ("qkv",)}],
)
def test_no_placeholders_where_gradients_are_not_accumulated_in_place(changes):
    assert placeholder(**changes) is None


def test_parts_that_another_rank_feeds_keep_their_last_input_and_its_gradient():
    first, last = (stage(shape(make(**PIPELINE)), index, CLUSTER) for index in (0, 1))
    whole = sum(term.high for term in last.terms if term.kind == "steady")
    assert last.steady - whole == 2 * 4 * 4096 * 4096
    assert first.steady - sum(term.high for term in first.terms if term.kind == "steady") == 4 * 4096 * 4096
    assert static_memory.last_inputs(shape(make()), 0) == 0
    assert static_memory.last_inputs(shape(make(**PIPELINE, model__kernels="mindspore")), 1) == 0


def test_last_inputs_are_in_flight_at_the_peak():
    last = stage(shape(make(**PIPELINE)), 1, CLUSTER)
    assert last.allocated_peak == pytest.approx(sum(term.high for term in last.terms if term.kind != "device"))


@pytest.mark.parametrize(("kind", "kept"), [("unfused", 4), ("native", 4), ("te", 2)])
def test_a_prediction_depth_keeps_what_the_backward_pass_of_its_loss_needs(kind, kept):
    s = shape(make(model__cross_entropy=kind, model__mtp=1))
    assert peak.kept_by_loss(s) == kept * 4096 * 32000


EIGHT = {"precision__fp8": "tensorwise"}
OWN = {**EIGHT, "precision__fp8_parameters": True}
BLOCKS = {**OWN, "precision__fp8": "mxfp8"}


@pytest.mark.parametrize(
    ("changes", "architecture", "least", "most"),
    [
        (EIGHT, 9, 2, 2),  # the cast weight and its transpose
        (EIGHT, 10, 1, 1),  # Blackwell needs no transpose
        (EIGHT, 0, 1, 2),
        (OWN, 9, 0, 1),
        (OWN, 10, 0, 0),
        (BLOCKS, 10, 1, 1),  # rows and columns are scaled apart
        ({**BLOCKS, "precision__gather_buffer": True}, 10, 3, 3),
    ],
)
def test_copies_of_weights_in_eight_bits(changes, architecture, least, most):
    s = shape(make(**changes), architecture)
    n = stage(s, 0, CLUSTER).parameters - 2 * 32000 * 4096
    assert static_memory.caches(s, parameters.stage(s, 0)) == (least * n, most * n)


def test_tables_keep_their_precision_where_weights_have_eight_bits():
    weights = [
        next(term.high for term in stage(shape(make(**changes), 9), 0, CLUSTER).terms if term.name == "weights")
        for changes in ({}, OWN)
    ]
    assert weights[1] == weights[0] / 2 + 2 * 32000 * 4096


def test_what_linears_keep_has_eight_bits_and_what_attention_keeps_sixteen():
    kept = {
        name: activations.layer(shape(make(**EIGHT, model__attention=name)), routed=False)
        for name in ("flash", "unfused")
    }
    wide = 4096 * 4096
    assert kept["flash"]["attention output"] + kept["flash"]["attention output, quantized"] == 3 * wide
    assert kept["unfused"]["attention output"] == wide
    assert kept["flash"]["norm 1 output"] == wide
    experts = activations.layer(shape(make(**EIGHT, **MIXTURE, model__top_k=2)), routed=True)
    assert experts["dispatched tokens"] == 2 * wide


def test_norms_of_queries_and_keys_keep_their_inputs():
    kept = activations.layer(shape(make(model__qk_norm=True, model__query_groups=8)), routed=False)
    assert kept["query key norm inputs"] == 2 * 4096 * (32 + 8) * 128


def test_a_plan_remembers_the_device_that_it_was_checked_for():
    options = (
        "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
        "--max-position-embeddings 1024 --micro-batch-size 1"
    )
    command = [
        "pretrain_gpt.py",
        *f"{options} --lr 1e-4 --train-iters 10 --bf16 --tokenizer-type NullTokenizer --vocab-size 32000".split(),
    ]
    plans = {
        name: preflight.check_command(command, world_size=1, device=name, target="megatron").plan
        for name in ("a100-80gb", "h100", None)
    }
    work = {
        name: term.high
        for name, plan in plans.items()
        for term in preflight.estimate_memory(plan).stages[0].terms
        if term.name == "workspaces"
    }
    assert work == {"a100-80gb": 72 * 2**20, "h100": 100 * 2**20, None: 100 * 2**20}


def test_tensor_parallel_ranks_with_experts_of_their_own_hold_fewer_tokens_each():
    tensor = {
        **MIXTURE,
        "layout__tensor": 4,
        "layout__expert": 2,
        "layout__expert_tensor": 4,
        "layout__sequence_parallel": True,
    }
    parts, own = shape(make(**tensor)), shape(make(**tensor, layout__extended=True))
    assert parameters.stage(parts, 0).expert == parameters.stage(own, 0).expert
    assert activations.dispatched_tokens(parts) == 4 * activations.dispatched_tokens(own)


BLOCK = {
    "recompute__mode": "full",
    "recompute__method": "block",
    "layout__pipeline": 2,
    "layout__stages": ((3, 3), (3, 3)),
}


@pytest.mark.parametrize(
    ("layers", "whole"), [(0, (0, 0)), (1, (1, 0)), (2, (1, 1)), (3, (2, 1)), (6, (3, 3)), (9, (3, 3))]
)
def test_chunks_share_the_layers_that_a_rank_recomputes(layers, whole):
    s = shape(make(**BLOCK, recompute__layers=layers, recompute__shared=True))
    assert tuple(sum(recomputed(s, v, 0, index) for index in range(3)) for v in (0, 1)) == whole
    apart = shape(make(**BLOCK, recompute__layers=layers))
    assert all(sum(recomputed(apart, v, 0, index) for index in range(3)) == min(layers, 3) for v in (0, 1))


def test_layers_that_chunks_share_are_repeated_once():
    shared, apart = (
        flops.step(shape(make(**BLOCK, recompute__layers=1, recompute__shared=on))) for on in (True, False)
    )
    assert apart.hardware - apart.model == 2 * (shared.hardware - shared.model)


def test_norms_behind_and_a_gate_written_out_keep_more():
    plain, more = (shape(make(model__gate_kept=kept, model__post_norm=bool(kept))) for kept in (0, 4))
    for routed in (False, True):
        before, after = (
            activations.layer(shape(make(**MIXTURE, model__post_norm=on)), routed=routed) for on in (False, True)
        )
        assert sum(after.values()) - sum(before.values()) == 4 * 4096 * 4096
    wide = 2 * 4096 * 11008
    assert (
        sum(activations.layer(more, routed=False).values()) - sum(activations.layer(plain, routed=False).values())
        == 4 * wide + 4 * 4096 * 4096
    )
    assert parameters.stage(more, 0).dense - parameters.stage(plain, 0).dense == 32 * 2 * 4096


def test_a_cap_on_logits_keeps_its_tanh():
    capped, plain = (peak.logits_and_loss(shape(make(model__capped=on))) for on in (True, False))
    assert [one - other for one, other in zip(capped, plain, strict=True)] == [2 * 4096 * 32000] * 2


def test_a_gate_without_a_kernel_keeps_its_parts_in_experts_too_unless_they_are_made_again():
    mixture = {**MIXTURE, "model__top_k": 2, "model__gated": True}
    fused, apart = (activations.layer(shape(make(**mixture, model__gate_kept=kept)), routed=True) for kept in (0, 2))
    copies = 2 * (2 * 4096) * 1024
    assert sum(apart.values()) - sum(fused.values()) == 3 * copies, "two of the gate, and the product before its weight"
    again = {"recompute__mode": "selective", "recompute__modules": ("moe_act",)}
    made = [
        sum(activations.layer(shape(make(**mixture, **again, model__gate_kept=kept)), routed=True).values())
        for kept in (0, 2)
    ]
    assert made[0] == made[1]
