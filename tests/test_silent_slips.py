"""Mistakes with which a run still trains, by kind: one warning each, and none for the intended run."""

from __future__ import annotations

import pytest

from preflight.api import check_text

MODELS = {
    "Qwen3-14B": (
        "--num-layers 40 --hidden-size 5120 --ffn-hidden-size 17408 --num-attention-heads 40 --group-query-attention "
        "--num-query-groups 8 --kv-channels 128 --qk-layernorm --untie-embeddings-and-output-weights "
        "--padded-vocab-size 151936 --rotary-base 1000000"
    ),
    "Qwen3-1.7B": (
        "--num-layers 28 --hidden-size 2048 --ffn-hidden-size 6144 --num-attention-heads 16 --group-query-attention "
        "--num-query-groups 8 --kv-channels 128 --qk-layernorm --padded-vocab-size 151936 --rotary-base 1000000"
    ),
    "Llama-2-13b-hf": (
        "--num-layers 40 --hidden-size 5120 --ffn-hidden-size 13824 --num-attention-heads 40 "
        "--untie-embeddings-and-output-weights --padded-vocab-size 32000"
    ),
    "Llama-3.2-1B": (
        "--num-layers 16 --hidden-size 2048 --ffn-hidden-size 8192 --num-attention-heads 32 --group-query-attention "
        "--num-query-groups 8 --kv-channels 64 --padded-vocab-size 128256 --rotary-base 500000"
    ),
}
RUN = """export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nproc_per_node 8 pretrain_gpt.py --use-mcore-models --tokenizer-type PretrainedFromHF \\
  --tokenizer-name-or-path /models/{name} {sizes} \\
  --spec mindspeed_llm.tasks.models.spec.qwen3_spec layer_spec \\
  --swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope --seq-length 4096 \\
  --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 32 --lr 1.25e-6 --min-lr 1.25e-7 \\
  --lr-decay-style cosine --train-iters 20000 --lr-warmup-iters 200 --weight-decay 1e-1 --clip-grad 1.0 \\
  --init-method-std 0.01 --bf16 --seed 42 --use-distributed-optimizer --data-path /data/x_text_document \\
  --split 98,2,0 --save /ckpt/out --load /ckpt/hf_mg --no-load-optim --no-load-rng --finetune --save-interval 1000 \\
  --ckpt-format torch --eval-interval 1000 --eval-iters 10
"""
TRAIT = "differs-from-published"
KINDS: dict[str, list[tuple[str, str, str, str]]] = {
    "a trait of the published model": [
        ("Qwen3-14B", "--untie-embeddings-and-output-weights", "", TRAIT),
        ("Qwen3-14B", "--qk-layernorm", "", TRAIT),
        ("Qwen3-14B", "--disable-bias-linear", "", TRAIT),
        ("Qwen3-14B", "--kv-channels 128", "--kv-channels 64", TRAIT),
        ("Qwen3-1.7B", "--qk-layernorm", "", TRAIT),
        ("Qwen3-1.7B", "--qk-layernorm", "--qk-layernorm --untie-embeddings-and-output-weights", TRAIT),
        ("Qwen3-1.7B", "--kv-channels 128", "--kv-channels 96", TRAIT),
        ("Llama-2-13b-hf", "--untie-embeddings-and-output-weights", "", TRAIT),
        ("Llama-2-13b-hf", "--swiglu", "--swiglu --qk-layernorm", TRAIT),
        ("Llama-2-13b-hf", "--disable-bias-linear", "", TRAIT),
        ("Llama-3.2-1B", "--swiglu", "--swiglu --untie-embeddings-and-output-weights", TRAIT),
        ("Llama-3.2-1B", "--kv-channels 64", "--kv-channels 128", TRAIT),
        ("Qwen3-14B", "--swiglu", "", TRAIT),
        ("Llama-3.2-1B", "--swiglu", "", TRAIT),
        ("Llama-2-13b-hf", "--swiglu", "--squared-relu", TRAIT),
    ],
    "a factor out of every proportion": [
        ("Qwen3-14B", "--weight-decay 1e-1", "--weight-decay 1e1", "megatron/weight-decay-above-ten"),
        ("Qwen3-14B", "--clip-grad 1.0", "--clip-grad -1.0", "megatron/clip-grad-negative"),
        ("Qwen3-14B", "--finetune --save", "--init-method-std 1 --save", "megatron/init-too-wide"),
        ("Qwen3-14B", "--lr 1.25e-6", "--lr 1.25e6", "megatron/learning-rate-above-one"),
        ("Llama-2-13b-hf", "--seed 42", "--seed 42 --rotary-percent 50", "megatron/rotary-percent-above-one"),
        ("Llama-2-13b-hf", "--seed 42", "--seed 42 --adam-beta2 9.5", "megatron/adam-beta-out-of-range"),
        ("Llama-2-13b-hf", "--seed 42", "--seed 42 --adam-eps 1", "megatron/adam-epsilon-too-large"),
        ("Llama-2-13b-hf", "--seed 42", "--seed 42 --norm-epsilon 1", "megatron/norm-epsilon-too-large"),
        ("Llama-2-13b-hf", "--seed 42", "--seed 42 --hidden-dropout 1", "megatron/dropout-of-everything"),
        (
            "Qwen3-1.7B",
            "--seed 42",
            "--seed 42 --distributed-timeout-minutes 3600",
            "megatron/timeout-of-a-day",
        ),
    ],
    "a schedule that does not end": [
        ("Qwen3-14B", "--lr-decay-style cosine", "--lr-decay-style cosine --lr-decay-iters 200000", "decay-beyond-run"),
        ("Qwen3-1.7B", "--lr-decay-style cosine", "--lr-decay-style linear --lr-decay-iters 25000", "decay-beyond-run"),
        ("Qwen3-14B", "--min-lr 1.25e-7", "--min-lr 1.25e-6", "learning-rate-flat"),
        ("Qwen3-14B", "--lr 1.25e-6 --min-lr 1.25e-7", "--lr 0", "learning-rate-zero"),
        ("Qwen3-14B", "--clip-grad", "--lr-wsd-decay-iters 2000 --clip-grad", "wsd-options-without-wsd"),
        ("Llama-2-13b-hf", "--clip-grad", "--lr-wsd-decay-style linear --clip-grad", "wsd-options-without-wsd"),
        (
            "Qwen3-14B",
            "--lr-decay-style cosine",
            "--lr-decay-style WSD --lr-wsd-decay-iters 20000",
            "wsd-decay-over-run",
        ),
        (
            "Qwen3-14B",
            "--train-iters 20000 --lr-warmup-iters 200",
            "--train-iters 50 --lr-warmup-iters 2000 --lr-decay-iters 150000",
            "training-within-warmup",
        ),
        (
            "Qwen3-1.7B",
            "--lr-warmup-iters 200",
            "--lr-warmup-iters 20000 --lr-decay-iters 100000",
            "training-within-warmup",
        ),
        (
            "Llama-2-13b-hf",
            "--lr-warmup-iters 200",
            "--lr-warmup-iters 30000 --lr-decay-iters 300000",
            "training-within-warmup",
        ),
    ],
    "a run of which nothing is left": [
        ("Qwen3-14B", "--save /ckpt/out", "", "megatron/nothing-saved"),
        ("Qwen3-14B", "--save-interval 1000", "--save-interval 100000", "save-interval-beyond-run"),
        ("Qwen3-14B", "--save-interval 1000", "--save-interval 1000000", "save-interval-beyond-run"),
        ("Llama-2-13b-hf", "--save-interval 1000", "--save-interval 20001", "save-interval-beyond-run"),
        ("Qwen3-14B", "--split 98,2,0", "--split 0,98,2", "no-training-split"),
        ("Qwen3-1.7B", "--split 98,2,0", "--split 0,0,0", "no-training-split"),
        ("Llama-2-13b-hf", "--split 98,2,0", "", "default-split"),
        ("Qwen3-14B", "--load /ckpt/hf_mg", "--lora-r 8 --lora-target-modules linear_qkv", "lora-without-base"),
        ("Llama-2-13b-hf", "--load /ckpt/hf_mg", "--lora-r 8 --lora-target-modules linear_proj", "lora-without-base"),
        ("Qwen3-1.7B", "torchrun", "rm -rf /ckpt\ntorchrun", "removed-before-load"),
    ],
    "a base of rotary positions that is not the model's": [
        ("Qwen3-14B", "--rotary-base 1000000", "", TRAIT),
        ("Qwen3-14B", "--rotary-base 1000000", "--rotary-base 100000", TRAIT),
        ("Qwen3-14B", "--rotary-base 1000000", "--rotary-base 10000", TRAIT),
        ("Qwen3-1.7B", "--rotary-base 1000000", "", TRAIT),
        ("Qwen3-1.7B", "--rotary-base 1000000", "--rotary-base 500000", TRAIT),
        ("Qwen3-1.7B", "--rotary-base 1000000", "--rotary-base 10000", TRAIT),
        ("Llama-3.2-1B", "--rotary-base 500000", "", TRAIT),
        ("Llama-3.2-1B", "--rotary-base 500000", "--rotary-base 50000", TRAIT),
        ("Llama-3.2-1B", "--rotary-base 500000", "--rotary-base 10000", TRAIT),
        ("Llama-3.2-1B", "--rotary-base 500000", "--rotary-percent 1.0", TRAIT),
    ],
    "a split whose numbers changed places": [
        ("Qwen3-14B", "--split 98,2,0", "--split 2,98,0", "no-training-split"),
        ("Qwen3-14B", "--split 98,2,0", "--split 0.02,0.98,0", "no-training-split"),
        ("Qwen3-1.7B", "--split 98,2,0", "--split 1,949,50", "no-training-split"),
        ("Llama-2-13b-hf", "--split 98,2,0", "--split 8,99990,2", "no-training-split"),
        ("Llama-3.2-1B", "--split 98,2,0", "--split 30,969,1", "no-training-split"),
        ("Llama-3.2-1B", "--split 98,2,0", "--split 2/98/0", "no-training-split"),
    ],
    "a rate out of every proportion": [
        ("Qwen3-14B", "--lr 1.25e-6", "--lr 1.25e-1", "learning-rate-far-too-high"),
        ("Qwen3-1.7B", "--lr 1.25e-6", "--lr 0.1", "learning-rate-far-too-high"),
        ("Llama-2-13b-hf", "--lr 1.25e-6", "--lr 1", "learning-rate-far-too-high"),
        ("Llama-3.2-1B", "--lr 1.25e-6", "--lr 0.5", "learning-rate-far-too-high"),
    ],
    "a decay that lost a digit": [
        (
            "Qwen3-14B",
            "--lr-decay-style cosine",
            "--lr-decay-style cosine --lr-decay-iters 2000",
            "decay-far-too-early",
        ),
        (
            "Qwen3-1.7B",
            "--lr-decay-style cosine",
            "--lr-decay-style linear --lr-decay-iters 400",
            "decay-far-too-early",
        ),
        (
            "Llama-3.2-1B",
            "--lr-decay-style cosine",
            "--lr-decay-style cosine --lr-decay-iters 4000",
            "decay-far-too-early",
        ),
    ],
    "a warm-up that is most of the schedule": [
        ("Qwen3-14B", "--lr-warmup-iters 200", "--lr-warmup-iters 19000", "warmup-most-of-decay"),
        ("Qwen3-1.7B", "--lr-warmup-iters 200", "--lr-warmup-iters 12000", "warmup-most-of-decay"),
        ("Qwen3-1.7B", "--lr-warmup-iters 200", "--lr-warmup-fraction 0.99", "warmup-most-of-decay"),
        ("Llama-2-13b-hf", "--lr-warmup-iters 200", "--lr-warmup-fraction 0.6", "warmup-most-of-decay"),
        (
            "Llama-3.2-1B",
            "--lr-warmup-iters 200",
            "--lr-warmup-iters 2000 --lr-decay-iters 3000",
            "warmup-most-of-decay",
        ),
    ],
    "a module that may be one's own": [
        ("Qwen3-14B", "spec.qwen3_spec", "spec.qwen33_spec", "spec-missing"),
        ("Qwen3-14B", "spec.qwen3_spec", "spec.qwen4_spec", "spec-missing"),
        ("Llama-2-13b-hf", "spec.qwen3_spec", "spec.gemma3_spec", "spec-missing"),
        ("Llama-2-13b-hf", "spec.qwen3_spec", "spec.phi4_moe_spec", "spec-missing"),
    ],
}
SLIPS = [(kind, *slip) for kind, slips in KINDS.items() for slip in slips]
DEATHS = [
    ("--seed 42", "--seed 0"),
    ("--seed 42", "--seed -1"),
    ("--save-interval 1000", "--save-interval 0"),
    ("--bf16", "--fp16 --loss-scale -4"),
    ("--bf16", "--fp16 --initial-loss-scale 0"),
    ("--bf16", "--fp16 --initial-loss-scale 16 --min-loss-scale 32"),
    ("--bf16", "--fp16 --loss-scale-window 0"),
    ("--bf16", "--fp16 --hysteresis 0"),
    ("--eval-interval 1000", "--eval-interval 0"),
    ("--seed 42", "--seed 42 --log-interval 0"),
    ("--lr-warmup-iters 200", "--lr-warmup-iters 20000"),
    ("--lr-warmup-iters 200", "--lr-warmup-fraction 1.5"),
    ("--ckpt-format torch", "--ckpt-format torch --async-save"),
    ("--seed 42", "--seed 42 --attention-dropout 10"),
    ("spec.qwen3_spec", "spec.qwen_3_spec"),
    ("models.spec.qwen3_spec", "models.specs.qwen3_spec"),
    ("tasks.models.spec", "task.models.spec"),
    ("qwen3_spec layer_spec", "qwen3_spec layer_specs"),
    ("spec.qwen3_spec", "spec.gema2_spec"),
    ("spec.qwen3_spec", "spec.deepseek_specs"),
    ("spec.qwen3_spec", "spec.hunyan_spec"),
    ("spec.qwen3_spec", "spec.minicmp_spec"),
    ("qwen3_spec layer_spec", "qwen3_spec layer_sepc"),
    ("mindspeed_llm.tasks.models.spec.qwen3_spec", "modellink.tasks.models.spec.qwen3_spec"),
    ("mindspeed_llm.tasks.models.spec.qwen3_spec", "modellink.tasks.models.spec.gemma2_spec"),
    ("mindspeed_llm.tasks.models.spec.qwen3_spec", "modellink.tasks.models.spec.deepseek_spec"),
]


def run(name: str, old: str = "", new: str = "") -> str:
    text = RUN.format(name=name, sizes=MODELS[name])
    assert old in text
    return text.replace(old, new, 1) if old else text


def findings(text: str) -> set[tuple[str, str]]:
    report = check_text(text, name="run.sh", target="mindspeed-llm@26.1.0", world_size=8)
    return {(finding.rule, str(finding.severity)) for finding in report.findings}


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_wrong_with_the_runs(name: str) -> None:
    assert not {one for one in findings(run(name)) if one[1] != "note"}


@pytest.mark.parametrize(("kind", "name", "old", "new", "rule"), SLIPS)
def test_a_slip_is_a_warning(kind: str, name: str, old: str, new: str, rule: str) -> None:
    found = {one for one in findings(run(name, old, new)) if one[1] != "note"}
    assert {severity for _, severity in found} == {"warning"}, kind
    assert any(id == rule or id.endswith(f"/{rule}") for id, _ in found)


@pytest.mark.parametrize(("old", "new"), DEATHS)
def test_a_death_is_an_error(old: str, new: str) -> None:
    assert "error" in {severity for _, severity in findings(run("Llama-2-13b-hf", old, new))}
