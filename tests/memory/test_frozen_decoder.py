"""A projection trained between frozen image encoders and a frozen language model (Megatron's examples/multimodal)."""

from __future__ import annotations

import pytest

import preflight

RUN = (
    "examples/multimodal/train.py --language-model-type qwen2.0_72B --vision-model-type internvit --patch-dim 14 "
    "--img-h 448 --img-w 448 --pixel-shuffle --disable-vision-class-token --tokenizer-type MultimodalTokenizer "
    "--tokenizer-model Qwen/Qwen2-72B-Instruct --tokenizer-prompt-format qwen2p0 --transformer-impl transformer_engine "
    "--normalization RMSNorm --group-query-attention --num-query-groups 8 --untie-embeddings-and-output-weights "
    "--position-embedding-type rope --swiglu --disable-bias-linear --num-layers 80 --hidden-size 8192 "
    "--ffn-hidden-size 29568 --num-attention-heads 64 --tensor-model-parallel-size 8 --seq-length 256 "
    "--decoder-seq-length 512 --max-position-embeddings 32768 --micro-batch-size 1 --global-batch-size 8 --bf16 "
    "--lr 1e-4 --train-samples 1000 --use-distributed-optimizer --hidden-dropout 0 --attention-dropout 0"
)
FROZEN = ("--freeze-LM", "--freeze-ViT")


def job(*more):
    report = preflight.check_command([*RUN.split(), *more], world_size=8, device="h100", target="megatron@0.19.0")
    return report.jobs[0]


def sizes(found):
    return {term.name: term.high for term in found.memory.stages[0].terms}


def test_weights_of_both_models_stay_and_the_projection_alone_is_trained():
    terms = sizes(job(*FROZEN))
    language, encoder = 72.7e9, 45 * 3200 * (4 * 4096 + 2 * 12800)  # 32 heads of 128: padded for 8 ranks
    assert terms["weights"] == pytest.approx(2 * (language + encoder) / 8, rel=0.02)
    assert terms["gradients"] == pytest.approx(4 * (4 * 3200 + 8192) * 29568 / 8)


def test_inputs_of_frozen_linears_are_not_kept():
    terms = sizes(job(*FROZEN))
    assert "activations: norm 1 output" not in terms
    assert "activations: activation output" not in terms
    assert "activations: fc1 output" in terms


def test_the_language_model_gets_the_decoder_s_tokens():
    assert job(*FROZEN).plan.model.sequence.raw == 512


def test_a_trained_language_model_stays_a_stated_gap():
    assert any("entry script" in taken for taken in job("--freeze-ViT").memory.taken)
    assert job("--freeze-ViT").plan.model.beside.raw is None
    assert any("frozen" in taken for taken in job(*FROZEN, "--vision-model-type", "hf://some/model").memory.taken)


def test_its_step_time_stays_unknown():
    assert "encoders" in preflight.estimate_step_time(job(*FROZEN)).unknown[0]


@pytest.mark.parametrize("more", [("--tensor-model-parallel-size", "0"), ("--patch-dim", "0"), ("--kv-channels", "-1")])
def test_sizes_that_are_no_sizes_crash_nothing(more):
    report = preflight.check_command([*RUN.split(), *FROZEN, *more], world_size=8, target="megatron@0.19.0")
    assert not report.crashes
