"""--swap-attention of MindSpeed: attention's activations are on the host while other layers are at work."""

from __future__ import annotations

import pytest

import preflight

GIB = 2**30
RUN = (
    "pretrain_gpt.py --use-mcore-models --num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --swiglu "
    "--num-attention-heads 32 --seq-length 8192 --max-position-embeddings 8192 --normalization RMSNorm "
    "--position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights "
    "--micro-batch-size 1 --global-batch-size 16 --tensor-model-parallel-size 8 --sequence-parallel "
    "--use-distributed-optimizer --bf16 --use-flash-attn --attention-dropout 0.0 --hidden-dropout 0.0 "
    "--tokenizer-type NullTokenizer --vocab-size 32000 --lr 1e-5 --train-iters 100"
)


def memory(*more, target="mindspeed-llm@26.1.0", without=()):
    words = [word for word in RUN.split() if word not in without]
    report = preflight.check_command([*words, *more], world_size=16, device="910B1", target=target)
    return report.jobs[0].memory


def kept(found):
    return {term.name: term.high for term in found.stages[0].terms if term.name.startswith("activations")}


def test_what_attention_keeps_is_gone_and_the_mlp_stays():
    plain, swapped = kept(memory()), kept(memory("--swap-attention"))
    gone = {"norm 1 output", "query key value", "attention output"}
    assert set(plain) - set(swapped) == {f"activations: {name}" for name in gone}
    assert all(swapped[name] == plain[name] for name in swapped)


def test_it_is_no_longer_a_stated_gap():
    found = memory("--swap-attention")
    assert not any("offloaded" in taken for taken in found.taken)
    assert found.stages[0].required < 1.35 * found.stages[0].low


def test_before_2_2_the_norm_before_attention_is_swapped_as_well():
    older, newer = (kept(memory("--swap-attention", target=f"mindspeed-llm@{v}")) for v in ("2.1.0", "26.1.0"))
    assert "activations: norm 1 input" in newer
    assert "activations: norm 1 input" not in older


def test_recomputed_layers_are_mlps_then():
    none = kept(memory("--swap-attention"))
    some = kept(memory("--swap-attention", "--recompute-num-layers", "8"))
    assert some["activations: fc1 output"] == pytest.approx(none["activations: fc1 output"] * 24 / 32)
    assert some["activations: norm 2 output"] == none["activations: norm 2 output"]
    full = ("--recompute-granularity", "full", "--recompute-method", "uniform", "--recompute-num-layers", "1")
    whole = kept(memory("--swap-attention", *full))
    assert "activations: fc1 output" not in whole
    assert "activations: recomputed layers' inputs" not in whole


def test_block_recomputation_swaps_no_more_layers_than_it_recomputes():
    block = ("--recompute-granularity", "full", "--recompute-method", "block", "--recompute-num-layers", "8")
    plain, found = kept(memory()), kept(memory("--swap-attention", *block))
    assert found["activations: query key value"] == pytest.approx(plain["activations: query key value"] * 24 / 32)


def test_virtual_stages_share_what_is_recomputed():
    virtual = ("--pipeline-model-parallel-size", "2", "--num-layers-per-virtual-pipeline-stage", "4")
    each = kept(memory("--swap-attention", *virtual, "--recompute-num-layers", "2"))
    shared = kept(
        memory("--swap-attention", *virtual, "--recompute-num-layers", "8", "--enable-recompute-layers-per-pp-rank")
    )
    assert each == shared


def test_other_modules_stay_a_stated_gap():
    found = memory("--swap-attention", "--swap-modules", "self_attention,mlp")
    assert any("offloaded" in taken for taken in found.taken)


def test_latent_attention_with_an_indexer_has_at_least_its_own_weights():
    latent = (
        "--multi-latent-attention --qk-pos-emb-head-dim 64 --qk-head-dim 128 --q-lora-rank 1536 --kv-lora-rank 512 "
        "--v-head-dim 128 --qk-layernorm"
    ).split()
    plain, sparse = memory(*latent), memory(*latent, "--enable-dsa-indexer")
    weights = [next(t for t in found.stages[0].terms if t.name == "weights") for found in (plain, sparse)]
    assert weights[0].low == weights[1].low
    assert any("indexer" in taken for taken in sparse.taken) and sparse.stages[0].low < plain.stages[0].low


def test_what_experts_give_is_gone_where_their_layers_are_recomputed():
    """Releases that weigh the experts' outputs keep them for the backward pass, unless the MLP is recomputed."""
    mixture = (
        "--num-experts",
        "8",
        "--expert-model-parallel-size",
        "2",
        "--moe-router-topk",
        "2",
        "--moe-grouped-gemm",
    )
    older = {"target": "mindspeed-llm@1.0.0"}
    kept_all = kept(memory("--swap-attention", *mixture, **older))
    recomputed = kept(memory("--swap-attention", "--recompute-num-layers", "32", *mixture, **older))
    assert "activations: expert outputs" in kept_all
    assert "activations: expert outputs" not in recomputed
