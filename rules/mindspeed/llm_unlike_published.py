"""Values of MindSpeed-LLM that hardly any published script has: a digit or a line is probably missing."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindspeed.shorthand import a
from preflight.source.finding import Severity

ROTARY = "mindspeed_llm/core/models/common/embeddings/rotary_pos_embedding.py"
SOME, WIDE = 1_000, 2_048
"""Runs with fewer iterations, or narrower networks, are trials."""

MINDSPEED_LLM = ConstraintSet("mindspeed-llm", why="no check covers this value, and weights see other positions")
MINDSPEED_LLM.add(
    refuse(
        "llama3-frequencies",
        all_of(
            a.rope_scaling_type == "llama3",
            any_of(
                a.low_freq_factor != 1,
                a.high_freq_factor != 4,
                a.rope_scaling_factor < 1,
            ),
        ),
        at=(a.low_freq_factor, a.high_freq_factor, a.rope_scaling_factor),
        message=(
            "the frequencies are scaled with --low-freq-factor {low_freq_factor}, --high-freq-factor {high_freq_factor} "
            "and --rope-scaling-factor {rope_scaling_factor}, but published Llama models have 1, 4 and a factor above 1"
        ),
        why="the weights were trained with other frequencies, so the model attends to other positions than it learned",
        severity=Severity.WARNING,
        upstream=ROTARY,
        after=("mindspeed-llm/frequency-factors-swapped", "mindspeed-llm/llama3-scaling-incomplete"),
    ),
    refuse(
        "yarn-out-of-range",
        all_of(
            a.rope_scaling_type == "yarn",
            any_of(
                a.beta_fast > 64,
                all_of(a.beta_fast < 16, a.beta_fast != 1),
                a.beta_slow > 2,
                a.rope_scaling_mscale > 2,
                a.rope_scaling_mscale_all_dim > 2,
                all_of(a.rope_scaling_mscale_all_dim > 0, a.rope_scaling_mscale > a.rope_scaling_mscale_all_dim * 2),
                all_of(a.rope_scaling_mscale > 0, a.rope_scaling_mscale * 2 < a.rope_scaling_mscale_all_dim),
            ),
        ),
        at=(a.beta_fast, a.beta_slow, a.rope_scaling_mscale, a.rope_scaling_mscale_all_dim),
        message=(
            "yarn has --beta-fast {beta_fast}, --beta-slow {beta_slow}, --rope-scaling-mscale {rope_scaling_mscale} and "
            "--rope-scaling-mscale-all-dim {rope_scaling_mscale_all_dim}, but published models have 32 (or 1), 1, and "
            "the same scale of 0.707 or 1 twice"
        ),
        why="the weights were trained with other frequencies, so the model attends to other positions than it learned",
        severity=Severity.WARNING,
        upstream=ROTARY,
    ),
    refuse(
        "dpo-beta-out-of-range",
        all_of(
            a.stage == "dpo", a.dpo_loss_type != "ipo", a.dpo_beta.given, any_of(a.dpo_beta >= 5, a.dpo_beta <= 0.001)
        ),
        at=(a.dpo_beta,),
        message="--dpo-beta {dpo_beta} is far from the usual 0.1",
        why=(
            "a large beta keeps the model at the reference, and a small one lets it drift away from it. The decimal point "
            "may be in the wrong place"
        ),
        severity=Severity.WARNING,
        upstream="https://arxiv.org/abs/2305.18290",
    ),
    refuse(
        "fine-tunes-in-float32",
        all_of(
            a.stage == "sft",
            a.options_are_complete,
            ~a.bf16,
            ~a.fp16,
            ~a.deterministic_mode,
            a.hidden_size >= WIDE,
            a.train_iters >= SOME,
        ),
        at=(a.stage,),
        message="neither --bf16 nor --fp16 is given, so the model is fine-tuned in float32",
        why="float32 needs twice the memory for activations and is several times slower. A line may be missing",
        severity=Severity.WARNING,
        upstream="megatron/training/arguments.py",
        after=("mindspeed/reuse-fp32-param-bf16", "megatron/grouped-gemm-without-bf16"),
    ),
)
