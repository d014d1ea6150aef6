"""MindSpeed-LLM options that have no effect or crash the run because a companion option is missing."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindspeed.shorthand import a, flag
from preflight.source.finding import Severity

ROTARY = "mindspeed_llm/core/models/common/embeddings/rotary_pos_embedding.py"
OTHER_NAMES = ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h", "q_proj", "k_proj", "v_proj", "o_proj")
"""Layer names of the legacy models and of Hugging Face models."""
YARN = a.rope_scaling_type == "yarn"
GEMMA = a.spec.has("mindspeed_llm.tasks.models.spec.gemma2_spec")
"""The layers of Gemma 2; those of GLM-4-0414 are the same, without any of GEMMA_PARTS."""
GEMMA_PARTS = (
    ("norm-offset", a.add_rmsnorm_offset, "mindspeed_llm/core/models/common/rms_norm.py:41"),
    ("embedding-norm", a.input_embeds_norm, "mindspeed_llm/core/transformer/transformer_block.py:279"),
    ("logit-cap", a.output_logit_softcapping, "mindspeed_llm/core/models/gpt/gpt_model.py:315"),
    ("query-scale", a.query_pre_attn_scalar, "mindspeed_llm/core/transformer/custom_dot_product_attention.py:164"),
)

MINDSPEED = ConstraintSet("mindspeed")
MINDSPEED.add(
    refuse(
        "fused-swiglu-without-swiglu",
        a.use_fused_swiglu & ~a.swiglu,
        severity=Severity.WARNING,
        at=(a.use_fused_swiglu,),
        message="--use-fused-swiglu has no effect without --swiglu, so the activation stays GELU",
        why="the fused kernel replaces only SwiGLU, so a different model is trained",
        fixes=(put(a.swiglu),),
        after=("mindspeed-llm/fused-swiglu-kind",),
    ),
    refuse(
        "fused-rmsnorm-with-layernorm",
        a.use_fused_rmsnorm & (a.normalization == "LayerNorm"),
        severity=Severity.WARNING,
        message="--use-fused-rmsnorm has no effect with --normalization {normalization}, so the norm stays LayerNorm",
        why="the fused kernel replaces only RMSNorm, so a different model is trained",
        fixes=(put(a.normalization, "RMSNorm"),),
        after=("mindspeed/fused-rmsnorm", "mindspeed-llm/fused-rmsnorm-kind"),
    ),
)

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "yarn-without-original-positions",
        YARN & a.rope_scaling_original_max_position_embeddings.is_none,
        upstream=f"{ROTARY}:56",
        at=(a.rope_scaling_type,),
        message="yarn needs --rope-scaling-original-max-position-embeddings",
        why="the correction is computed from the missing option, so the run crashes when the model is built",
        after=("mindspeed-llm/yarn-positions",),
    ),
    refuse(
        "lora-without-targets",
        (a.lora_r.given | a.lora_alpha.given) & (a.lora_target_modules.is_none | (a.lora_target_modules.length == 0)),
        severity=Severity.WARNING,
        at=(a.lora_r, a.lora_alpha),
        message=(
            "a LoRA rank is given without --lora-target-modules, so no adapter is created and all weights are trained"
        ),
        why="adapters are created only for named modules",
    ),
    refuse(
        "lora-targets-of-other-names",
        ~a.use_legacy_models & a.spec.is_none & any_of(*(a.lora_target_modules.has(name) for name in OTHER_NAMES)),
        severity=Severity.WARNING,
        at=(a.lora_target_modules,),
        message=(
            "--lora-target-modules {lora_target_modules} names layers that mcore does not have, so no adapter is "
            "created"
        ),
        why="mcore names its layers linear_qkv, linear_proj, linear_fc1 and linear_fc2, and peft skips other names",
        versions=">=2.3",
        after=("mindspeed-llm/lora-matches-nothing",),
    ),
    refuse(
        "posttraining-without-stage",
        (a.entry == "posttrain_gpt.py") & a.stage.is_none,
        upstream="mindspeed_llm/tasks/posttrain/launcher.py:57",
        message="posttrain_gpt.py needs --stage, because without it there is no trainer",
        why="the stage chooses the trainer, so without it the run fails with an AttributeError when it starts training",
        fixes=(put(a.stage, "sft"),),
        versions=">=2.0",
    ),
    refuse(
        "posttraining-without-base",
        (a.entry == "posttrain_gpt.py")
        & ~a.skip_train
        & a.save.given
        & a.stage.is_in("sft", "dpo", "simpo")
        & ~a.load.given
        & ~a.lora_load.given
        & ~a.lora_target_modules.given
        & ~a.enable_hf2mg_convert,
        severity=Severity.WARNING,
        at=(a.stage,),
        upstream="mindspeed_llm/tasks/posttrain/base/base_trainer.py",
        message="--stage {stage} is given without --load, so random weights are trained instead of a pretrained model",
        why="no check requires a checkpoint, and the run starts from random initial weights",
        versions=">=2.0",
    ),
    refuse(
        "stage-with-pretraining-entry",
        (a.entry == "pretrain_gpt.py") & a.stage.is_set,
        severity=Severity.WARNING,
        at=(a.stage,),
        message="--stage {stage} has no effect with pretrain_gpt.py; only posttrain_gpt.py reads it",
        why="the data is read as plain text for pretraining, and the loss includes the prompts",
        versions=">=2.0",
    ),
)
MINDSPEED_LLM.add(
    *(
        refuse(
            f"gemma-{part}-left-out",
            GEMMA & ~own.given & all_of(*(other.given for _, other, _ in GEMMA_PARTS if other is not own)),
            severity=Severity.WARNING,
            at=(a.spec,),
            upstream=place,
            message="the run has the other parts of Gemma 2, but not {part}",
            shows={"part": flag(own)},
            why="no check requires this option, and the network differs from the one that the weights were trained in",
            versions=">=2.0",
        )
        for part, own, place in GEMMA_PARTS
    )
)
MINDSPEED_LLM.add(
    refuse(
        "fine-tuning-rate-too-high",
        all_of(
            ~a.skip_train,
            a.entry == "posttrain_gpt.py",
            a.stage.is_in("sft", "dpo", "simpo"),
            ~a.lora_target_modules.given,
            a.optimizer == "adam",
            a.lr >= 5e-4,
            a.lr < 0.005,
        ),
        severity=Severity.WARNING,
        at=(a.lr,),
        upstream="examples/mcore/qwen3/tune_qwen3_8b_4K_full_ptd.sh",
        message=(
            "--lr {lr} is unusually high for fine-tuning all weights, which usually takes about 1e-5; the exponent may be "
            "wrong"
        ),
        why="the model loses what it knows within a few steps; adapters take up to 1e-3",
        versions=">=2.0",
        after=("megatron/fine-tuning-rate-too-high",),
    ),
    refuse(
        "gemma-query-scale",
        all_of(
            GEMMA,
            a.query_pre_attn_scalar.given,
            a.query_pre_attn_scalar > 0,
            a.kv_channels.is_set,
            a.query_pre_attn_scalar != a.kv_channels,
            a.query_pre_attn_scalar * a.num_attention_heads != a.hidden_size,
        ),
        severity=Severity.WARNING,
        at=(a.query_pre_attn_scalar,),
        upstream="mindspeed_llm/core/transformer/custom_dot_product_attention.py:165",
        message=(
            "--query-pre-attn-scalar {query_pre_attn_scalar} is neither the width of a head, {kv_channels}, nor the hidden "
            "size divided by the heads"
        ),
        why=(
            "attention scores are divided by its square root; Gemma 2 2B and 9B use the width of a head and 27B uses hidden "
            "size over heads, so attention differs from the one that the weights were trained in"
        ),
        versions=">=2.0",
    ),
)
