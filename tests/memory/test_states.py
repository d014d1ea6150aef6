"""Optimizers that treat parameters differently, states that visit the device, sharded weights, folded pipelines."""

from __future__ import annotations

import pytest
from memory_plans import make

import preflight
from preflight.memory import activations, parameters
from preflight.memory.estimate import stage
from preflight.memory.inputs_from_plan import shape
from preflight.memory.peak import fallback_terms
from preflight.run.cluster import Cluster, Device

CLUSTER = Cluster(device=Device("test", 80e9, 79e9))
TABLE = 32000 * 4096
SHARDED = {"optimizer__zero": 1, "optimizer__shards": 8}
FOLDED = {
    "layout__pipeline": 4,
    "layout__stages": ((4,) * 4,) * 2,
    "layout__schedule": "dual-pipe-v",
    "batch__count": 16,
}


def rank(index=0, architecture=0, **changes):
    return stage(shape(make(**changes), architecture), index, CLUSTER)


def sizes(index=0, **changes):
    return {term.name: term.high for term in rank(index, **changes).terms}


@pytest.mark.parametrize(
    ("first", "second", "both"), [("fp32", None, 8), ("bf16", None, 4), ("bf16", "fp32", 6), ("fp8", "fp16", 3)]
)
def test_two_moments_may_be_of_two_types(first, second, both):
    kept = rank(precision__states=first, precision__second=second)
    assert sum(term.high for term in kept.terms if term.name == "optimizer states") == both * kept.parameters


def test_muon_keeps_one_moment_of_matrices_and_two_of_tables():
    whole, muon = sizes(), sizes(optimizer__name="muon")
    assert whole["optimizer states"] - muon["optimizer states"] == pytest.approx(
        4 * (parameters.stage(shape(make()), 0).total - 2 * TABLE)
    )
    assert muon["master weights"] == whole["master weights"]


@pytest.mark.parametrize(("owned", "low", "high"), [("", 1 / 8, 1 / 8), ("either", 1 / 8, 0.5), ("all", 0.5, 0.5)])
def test_whole_parameters_lie_on_one_rank(owned, low, high):
    s = shape(make(optimizer__name="muon", optimizer__owned=owned, **SHARDED))
    matrices = parameters.stage(s, 0).total - 2 * TABLE
    master = next(term for term in stage(s, 0, CLUSTER).terms if term.name == "master weights")
    assert master.low == pytest.approx(4 * (matrices / 8 + low * 2 * TABLE))
    assert master.high == pytest.approx(4 * (matrices / 8 + high * 2 * TABLE))


def test_swapped_states_visit_the_device_in_parts():
    kept, swapped = sizes(**SHARDED), sizes(optimizer__swapped=16, **SHARDED)
    assert swapped["master weights"] == swapped["optimizer states"] == 0
    assert swapped["weights"] == kept["weights"] and swapped["gradients"] == kept["gradients"]
    small = rank(optimizer__swapped=1, batch__micro=1, model__sequence=128, **SHARDED)
    step = next(term for term in small.terms if term.name == "the optimizer's step")
    assert step.high == pytest.approx(12 * parameters.stage(shape(make()), 0).total / 8)
    assert small.allocated_peak == pytest.approx(small.steady + step.high)


@pytest.mark.parametrize("implementation", ["torch-npu", "transformer_engine"])
def test_a_step_out_of_place_copies_one_parameter(implementation):
    short = rank(model__sequence=64, model__kernels=implementation, **SHARDED)
    step = [term for term in short.terms if term.name == "the optimizer's step"]
    assert [term.high for term in step] == ([4.0 * TABLE] if implementation == "torch-npu" else [])
    if step:
        assert step[0].low < step[0].high
        assert short.first_step == pytest.approx(short.steady + 4 * TABLE)


def test_moments_of_16_bits_are_widened_for_the_update():
    narrow = rank(model__sequence=64, model__kernels="torch-npu", precision__states="bf16", **SHARDED)
    assert next(term.high for term in narrow.terms if term.name == "the optimizer's step") == 12.0 * TABLE


def test_fully_sharded_layers_are_whole_at_work_and_tables_until_the_end():
    layer = parameters.dense_layer(shape(make()))
    assert sizes(optimizer__zero=3, optimizer__shards=8)["gathered weights"] == pytest.approx((2 * 2 + 4) * layer)
    fsdp = {"optimizer__fsdp": "megatron-fsdp", "optimizer__shards": 8}
    assert sizes(optimizer__zero=3, **fsdp)["gathered weights"] == pytest.approx((2 * 2 + 4) * layer + 2 * 2 * TABLE)
    assert sizes(optimizer__zero=3, optimizer__double_buffer=True, **fsdp)["gathered weights"] == pytest.approx(
        (2 * 2 + 8) * layer + 4 * TABLE
    )
    assert sizes(optimizer__zero=2, **fsdp)["gathered weights"] == pytest.approx(4 * layer)
    assert "gathered weights" not in sizes(optimizer__zero=1, **fsdp)


def test_a_folded_pipeline_has_both_ends_on_its_first_rank():
    first, last = sizes(0, **FOLDED), sizes(3, **FOLDED)
    assert "logits and loss" in first and "logits and loss" not in last
    n = [parameters.stage(shape(make(**FOLDED)), r) for r in range(4)]
    assert [bool(p.embedding or p.output) for p in n] == [True, False, False, False]
    assert sum(p.total for p in n) == pytest.approx(parameters.stage(shape(make()), 0).total)
    assert shape(make(**FOLDED)).first_layer(1, 3) == 16 and shape(make(**FOLDED)).first_layer(1, 0) == 28


@pytest.mark.parametrize(("architecture", "may_fall_back"), [(0, True), (8, True), (9, False), (10, False)])
def test_deterministic_mode_is_fused_from_hopper_on(architecture, may_fall_back):
    s = shape(make(model__attention="flash-if-deterministic"), architecture)
    assert bool(fallback_terms(s, 0)) is may_fall_back


COMMON = (
    "pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
    "--max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --bf16 --lr 1e-4 --train-iters 10 "
    "--tokenizer-type NullTokenizer --vocab-size 32000 --position-embedding-type rope --use-distributed-optimizer "
)


def verdict(options, target):
    report = preflight.check_command((COMMON + options).split(), world_size=8, target=target)
    return report.jobs[0].memory, report.plan


def test_dual_pipe_splits_into_a_v():
    memory, plan = verdict(
        "--pipeline-model-parallel-size 2 --schedules-method dualpipev --noop-layers 7", "mindspeed-llm"
    )
    assert plan.layout.stages.raw == ((2, 2), (1, 2))
    assert len(memory.stages) == 2


LATENT = (
    "--multi-latent-attention --q-lora-rank 256 --kv-lora-rank 128 --qk-head-dim 64 --qk-pos-emb-head-dim 32 "
    "--v-head-dim 64 --use-flash-attn --spec mindspeed_llm.tasks.models.spec.deepseek_spec layer_spec "
    "--sequence-parallel "
)


def test_what_may_be_gone_at_the_peak_is_in_the_high_end_only():
    plain, _ = verdict(LATENT, "mindspeed-llm")
    swapped, plan = verdict(LATENT + "--recompute-mla-up-proj --mla-swap-core-attn-out", "mindspeed-llm")
    assert plan.recompute.doubtful.raw == (
        "query key value",
        "key value up",
        "attention output",
        "attention output, padded",
    )
    low = {term.name: (term.low, term.high) for term in swapped.worst.terms}
    for term in plain.worst.terms:
        if term.kind == "dynamic":
            gone = term.name.removeprefix("activations: ") in plan.recompute.doubtful.raw
            assert low[term.name] == (0.0 if gone else term.low, term.high)


def test_padded_heads_replace_the_projection_and_are_cut_to_size():
    sizes = {"model__latent": True, "model__q_lora_rank": 256, "model__kv_lora_rank": 128, "model__v_dim": 64}
    sizes |= {"model__qk_nope_dim": 64, "model__qk_rope_dim": 32, "layout__tensor": 2}
    plain, padded = (
        activations.attention(shape(make(**sizes, model__padded_dims=dims))) for dims in (None, (128, 128))
    )
    heads = 2 * 4096 * 16  # bytes of one number per token and head
    assert (plain["query key value"], plain["key value up"]) == (heads * (96 + 96 + 64), heads * (64 + 64))
    assert (padded["query key value"], padded["attention output, padded"]) == (heads * 3 * 128, heads * 128)
    assert padded["attention output"] == plain["attention output"] == heads * 64
    assert "key value up" not in padded
    recomputed = shape(
        make(**sizes, model__padded_dims=(128, 128), recompute__mode="selective", recompute__modules=("core_attn",))
    )
    assert "attention output, padded" not in activations.layer(recomputed, routed=False)


@pytest.mark.parametrize(
    ("options", "target", "known"),
    [
        ("--swap-optimizer", "mindspeed-llm", True),
        ("--optimizer muon", "megatron@0.20.0", True),
        ("--optimizer muon --muon-scalar-optimizer lion", "megatron@0.20.0", False),
        (
            "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --ckpt-format fsdp_dtensor",
            "megatron@0.20.0",
            True,
        ),
        ("--use-torch-fsdp2", "megatron@0.20.0", True),
        ("--swap-attention --swap-modules mlp --use-flash-attn", "mindspeed-llm", False),
        ("--quant-grads", "mindspeed-llm", False),
        ("--o2-optimizer", "mindspeed-llm", True),
    ],
)
def test_what_is_estimated_and_what_is_named(options, target, known):
    memory, _ = verdict(options, target)
    assert memory.stages
    assert known or "preflight has no memory formula for " in memory.taken[-1]


def test_a_preference_loss_keeps_more_than_cross_entropy():
    pairs = {"batch__pairs": True, "model__kernels": "torch-npu"}
    logits = 2 * 4096 * 32000
    loss = next(term for term in rank(**pairs).terms if term.name == "logits and loss")
    assert (loss.low, loss.high) == (12 * logits, 24 * logits)


def test_experts_have_a_wider_low_bound():
    mixed = rank(model__experts=8, model__top_k=2, model__expert_ffn=1024, model__expert_layers=(True,) * 32)
    for found, share in ((rank(), 0.92), (mixed, 0.87)):
        assert found.low == pytest.approx(share * sum(term.low for term in found.terms if term.kind != "device"))


@pytest.mark.parametrize(
    "changes",
    [{"recompute__modules": ("mlp",)}, {"recompute__operators": ((("fc1 output", "activation output"), ((32,),)),)}],
)
def test_what_is_recomputed_is_there_again_in_the_backward_of_its_layer(changes):
    wide = {"model__cross_entropy": "te", "model__vocab": 1024}  # so that the backward of a layer is the worst moment
    plain, again = sizes(**wide), sizes(**wide, recompute__mode="selective", **changes)
    outputs = ("activations: fc1 output", "activations: activation output")
    one = sum(plain[name] for name in outputs) / 32
    assert not set(outputs) & set(again)
    assert again["backward of one layer"] - plain["backward of one layer"] == pytest.approx(one)


def test_an_entry_script_that_builds_a_model_of_its_own_is_never_refused():
    sizes = "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --micro-batch-size 1 --bf16"
    more = "--max-position-embeddings 2048 --lr 1e-4 --train-iters 10 --vocab-size 32000"
    words = f"examples/mimo/train.py {sizes} {more}"
    report = preflight.check_command(words.split(), world_size=8, device="h100", target="megatron@0.19.0")
    memory = report.jobs[0].memory
    assert (memory.verdict, memory.supposed) == ("at-risk", True)
    assert not [finding for finding in report.findings if finding.rule == "predicted-oom"]
