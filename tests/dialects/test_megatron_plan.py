"""The Megatron family: the plan of a run, and its features without memory formulas."""

from __future__ import annotations

import pytest
from megatron_reading import SIZES, read

from preflight.dialects.megatron import unmodelled_memory
from preflight.run.unmodelled_features import Unmodelled


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            "--bf16",
            {
                "precision.master": "fp32",
                "precision.gradients": "fp32",
                "optimizer.zero": 0,
                "model.positions": 1024,
                "model.tied": True,
            },
        ),
        ("--bf16 --use-distributed-optimizer --context-parallel-size 2", {"optimizer.zero": 1, "optimizer.shards": 8}),
        ("--transformer-impl local", {"model.attention": "unfused", "model.kernels": "local"}),
        ("--attention-backend unfused", {"model.attention": "unfused"}),
        (
            "--position-embedding-type rope --normalization RMSNorm",
            {"model.positions": 0, "model.norm": "rms", "model.attention": "flash"},
        ),
        ("--cross-entropy-loss-fusion", {"model.cross_entropy": "native"}),
        ("--swiglu", {"model.gated": True, "model.gate_kept": 0}),
        ("--swiglu --no-bias-swiglu-fusion", {"model.gated": True, "model.gate_kept": 2}),
        ("--swiglu --no-bias-swiglu-fusion --use-te-activation-func", {"model.gate_kept": 0}),
        ("--no-bias-gelu-fusion", {"model.gated": False, "model.gate_kept": 0}),
        (
            "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2",
            {"layout.stages": ((3,) * 4,) * 2, "layout.schedule": "interleaved"},
        ),
        (
            "--recompute-granularity selective --recompute-modules [moe_act layernorm]",
            {"recompute.modules": ("moe_act", "layernorm")},
        ),
        (
            "--num-experts 8 --moe-shared-expert-intermediate-size 512",
            {"model.shared_ffn": 512, "model.expert_layers": (True,) * 24},
        ),
    ],
)
def test_plan(options: str, expected: dict[str, object]) -> None:
    values = read(SIZES + options).plan.values()
    assert {name: values[name].raw for name in expected} == expected


def test_what_the_memory_formulas_do_not_know_is_named() -> None:
    adapters = "--lora-r 8 --lora-target-modules"
    assert (
        Unmodelled.OTHER_ADAPTERS in read(SIZES + f"{adapters} query_key_value", target="mindspeed-llm").plan.unmodelled
    )
    assert read(SIZES + f"{adapters} linear_qkv", target="mindspeed-llm").plan.unmodelled == ()
    assert Unmodelled.CUDA_GRAPHS in read(SIZES + "--cuda-graph-impl local").plan.unmodelled
    ring = "--position-embedding-type alibi --context-parallel-size 2"
    assert Unmodelled.ALIBI in read(SIZES + ring, target="mindspeed-llm").plan.unmodelled
    assert (
        Unmodelled.ZERO_EXPERTS
        in read(SIZES + "--num-experts 16 --num-zero-experts 8", target="mindspeed-llm").plan.unmodelled
    )


@pytest.mark.parametrize("target", ["megatron", "megatron@0.12.1", "mindspeed", "mindspeed-llm"])
def test_of_a_plain_run_it_is_known_that_nothing_is_beyond_the_formulas(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unasked(Exception):
        pass

    monkeypatch.setattr(unmodelled_memory, "NotKnown", Unasked)
    assert read(SIZES, target=target).plan.unmodelled == ()


@pytest.mark.parametrize(
    ("options", "varying"),
    [
        ("--no-pad-to-seq-lengths", True),
        ("--variable-seq-lengths", True),  # releases until 2.2 padded nothing then
        ("", False),
    ],
)
def test_samples_that_may_not_be_padded(options: str, varying: bool) -> None:
    assert read(SIZES + options, target="mindspeed-llm").plan.batch.varying.raw is varying


def test_four_bits_are_no_part_of_the_memory_formulas() -> None:
    assert Unmodelled.FP4 in read(SIZES + "--bf16 --fp4-format e2m1").plan.unmodelled
    assert Unmodelled.FP4 not in read(SIZES + "--bf16 --fp8-format e4m3").plan.unmodelled


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-3.1-8B", 128256),
        (
            (
                "--tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/Qwen3-30B-A3B/ "
                "--tensor-model-parallel-size 8"
            ),
            152576,
        ),
        ("--tokenizer-type GPTSentencePieceTokenizer --tokenizer-model /data/nemotron_2_256k.model", 256000),
        ("--tokenizer-type Llama2Tokenizer --tokenizer-model tokenizer.model", 32000),
        ("--tokenizer-type Llama2Tokenizer --tokenizer-model /models/baichuan2-13B-hf/tokenizer.model", 125696),
        ("--tokenizer-type Llama2Tokenizer --tokenizer-model /models/another-13B/tokenizer.model", None),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model nvidia/Llama-3_3-Nemotron-Super-49B-v1", 128256),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model nvidia/Nemotron-4-340B-Base", 256000),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/Qwen3.5-27B", None),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model my-tokenizer", None),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /models/llama-3-8b/mine/tokenizer", None),
        (
            (
                "--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-3.1-8B "
                "--use-checkpoint-args --load x"
            ),
            None,
        ),
    ],
)
def test_the_vocabulary_of_a_published_tokenizer_is_for_estimates_alone(options: str, rows: int | None) -> None:
    reading = read(SIZES + options)
    value = reading.plan.model.vocab
    assert (value.raw if value.known else None) == rows
    assert not reading.arguments.get("padded_vocab_size").known


def test_residual_streams_and_attention_bias_are_in_the_plan() -> None:
    assert read(SIZES + "--enable-mhc-connections").plan.model.streams.raw == (4, 2, 2, 6)
    recomputed = "--enable-mhc-connections --recompute-granularity selective --recompute-modules mhc"
    assert read(SIZES + recomputed).plan.model.streams.raw == (4, 0, 2, 6)
    assert read(SIZES + "--enable-mhc --hc-mult 2", target="mindspeed-llm").plan.model.streams.raw == (2, 6, 6, 16)
    alibi = "--position-embedding-type alibi"
    assert read(SIZES + alibi, target="mindspeed-llm").plan.model.pair_bias.raw is None
    assert read(SIZES + f"{alibi} --square-alibi-mask", target="mindspeed-llm").plan.model.pair_bias.raw == (1, 2, 1)
