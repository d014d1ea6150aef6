"""ALiBi's bias: tensors of heads x sequence² that MindSpeed-LLM makes once, and that each layer in flight keeps."""

from __future__ import annotations

import pytest

import preflight

MIB = 2**20
BAICHUAN = (
    "pretrain_gpt.py --tensor-model-parallel-size 8 --sequence-parallel --hidden-size 5120 --ffn-hidden-size 13696 "
    "--num-attention-heads 40 --tokenizer-type NullTokenizer --vocab-size 125696 --make-vocab-size-divisible-by 32 "
    "--seq-length 4096 --max-position-embeddings 4096 --disable-bias-linear --micro-batch-size 2 "
    "--global-batch-size 128 --untie-embeddings-and-output-weights --no-gradient-accumulation-fusion --swiglu "
    "--normalization RMSNorm --attention-dropout 0.0 --hidden-dropout 0.0 --use-flash-attn --use-fused-rmsnorm "
    "--use-fused-swiglu --attention-softmax-in-fp32 --bf16 --lr 1e-5 --train-iters 20 "
    "--position-embedding-type alibi"
)
BLOOM = (
    "pretrain_gpt.py --tensor-model-parallel-size 8 --sequence-parallel --num-layers 30 --hidden-size 4096 "
    "--num-attention-heads 32 --tokenizer-type NullTokenizer --vocab-size 250879 --make-vocab-size-divisible-by 1 "
    "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 --global-batch-size 512 "
    "--attention-softmax-in-fp32 --apply-query-key-layer-scaling --hidden-dropout 0.0 --attention-dropout 0.0 "
    "--normalization LayerNorm --no-gradient-accumulation-fusion --bf16 --lr 1e-6 --train-iters 20 "
    "--position-embedding-type alibi"
)
SQUARE = ("--square-alibi-mask", "--fill-neg-inf")


def stage(command, *more, target="mindspeed-llm@2.3.0", world=8):
    report = preflight.check_command([*command.split(), *more], world_size=world, device="910b", target=target)
    memory = report.jobs[0].memory
    assert len(memory.stages) == 1 and not any("not modelled" in said for said in memory.taken), memory.taken
    return memory.stages[0]


def term(found, name):
    return sum(term.high for term in found.terms if term.name == name)


@pytest.mark.parametrize(
    ("command", "more", "release", "after", "most"),
    [
        # MindSpeed-LLM v2.3.0, tests/pipeline/baseline/baichuan2_13b_tp8_pp1_mcore.json, recorded before 2.1
        (BAICHUAN, ("--num-layers", "2", "--use-mcore-models", *SQUARE), "2.0.0", 4871.2, 5255.9),
        # v1.0.0, tests/pipeline/baseline/baichuan2_13B_tp8_pp1_ptd.json and bloom_7B_legacy_tp8_pp1_ptd.json
        (BAICHUAN, ("--num-layers", "40", *SQUARE), "1.0.0", 31025.7, 38328.6),
        (BLOOM, (), "1.0.0", 15244.6, 18725.1),
    ],
)
def test_published_recordings_are_met(command, more, release, after, most):
    """MiB after the first step and at its peak, of MindSpeed-LLM's own tests; none was used to find a formula."""
    found = stage(command, *more, target=f"mindspeed-llm@{release}")
    assert found.steady / MIB == pytest.approx(after, rel=0.03)
    assert found.first_step / MIB == pytest.approx(most, rel=0.03)


def test_a_square_bias_is_kept_by_every_layer_and_by_one_object():
    one = 2 * 5 * 4096**2
    two, four = (stage(BAICHUAN, "--num-layers", str(n), "--use-mcore-models", *SQUARE) for n in (2, 4))
    assert term(two, "activations: attention bias") == 2 * 2 * one
    assert term(four, "activations: attention bias") == 4 * 2 * one
    assert term(two, "attention bias, made once") == term(four, "attention bias, made once") == 4 * one


def test_one_row_for_all_queries_needs_next_to_nothing():
    found = stage(BAICHUAN, "--num-layers", "2", "--use-mcore-models")
    assert not any("bias" in term.name for term in found.terms)


def test_mindspeed_alone_passes_slopes_or_the_last_rows():
    words = BAICHUAN.replace("--use-fused-rmsnorm ", "").replace("--use-fused-swiglu ", "")
    slopes, rows = (
        stage(words, "--num-layers", "2", "--alibi-fusion-attn-type", kind, target="mindspeed@2.3.0")
        for kind in ("2", "0")
    )
    assert not any("bias" in term.name for term in slopes.terms)
    assert term(rows, "attention bias, made once") == 2 * 5 * 1024 * 4096


def test_recomputed_layers_keep_no_bias():
    full = ("--recompute-granularity", "full", "--recompute-method", "uniform", "--recompute-num-layers", "1")
    found = stage(BAICHUAN, "--num-layers", "2", "--use-mcore-models", *SQUARE, *full)
    assert term(found, "activations: attention bias") == 0
    assert term(found, "attention bias, made once") > 0
