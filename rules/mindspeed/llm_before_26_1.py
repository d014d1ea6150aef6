"""Settings that MindSpeed-LLM releases before 26.1 reject or handle wrongly, but that later releases support."""

from __future__ import annotations

from preflight import Safety, Severity
from preflight.lint.constraint import REMOVE, Change, ConstraintSet, Repair, drop, put, refuse
from preflight.rules.mindspeed.shorthand import a

FACTOR, GROUPS = a.deprecated_routed_scaling_factor, a.deprecated_topk_group
MTP = a.mtp_num_layers.is_set & (a.mtp_num_layers != 0)

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "neat-pack-positions",
        a.neat_pack & ~a.reset_position_ids,
        at=(a.neat_pack,),
        message="--neat-pack needs --reset-position-ids",
        why=(
            "before 2.3, only --reset-position-ids marks the ends of samples, so the run fails at launch without "
            "that option"
        ),
        fixes=(put(a.reset_position_ids), drop(a.neat_pack)),
    ),
    refuse(
        "expert-bias-score",
        a.moe_router_enable_expert_bias & (a.moe_router_score_function != "sigmoid"),
        message=(
            "--moe-router-enable-expert-bias needs --moe-router-score-function sigmoid, not {moe_router_score_function}"
        ),
        why="before 26.0, biases can only be added to sigmoid scores, so the run fails at launch",
        fixes=(put(a.moe_router_score_function, "sigmoid"), drop(a.moe_router_enable_expert_bias)),
    ),
    refuse(
        "mtp-context-parallel",
        MTP & (a.context_parallel_size > 1),
        versions="<26",
        upstream="megatron/training/arguments.py:963",
        message="--mtp-num-layers does not work with a context-parallel size of {context_parallel_size}",
        why=(
            "before 26.0, MindSpeed-LLM does not disable Megatron's check of this combination, so the run fails at "
            "launch"
        ),
        fixes=(drop(a.mtp_num_layers),),
        layout=True,
    ),
    refuse(
        "mtp-packed-context-parallel",
        MTP & (a.context_parallel_size > 1) & a.reset_attention_mask,
        at=(a.mtp_num_layers, a.reset_attention_mask),
        message=(
            "--mtp-num-layers with a context-parallel size of {context_parallel_size} does not work with "
            "--reset-attention-mask"
        ),
        why="predictions would cross document boundaries, so the run fails at launch",
        fixes=(drop(a.mtp_num_layers), drop(a.reset_attention_mask)),
    ),
    refuse(
        "indexer-packed",
        a.enable_dsa_indexer & (a.reset_attention_mask | a.reset_position_ids),
        message="--enable-dsa-indexer does not work with --reset-attention-mask or --reset-position-ids",
        why="before 26.1, the indexer supports only whole samples, so the run fails at launch",
        fixes=(drop(also=(a.reset_attention_mask, a.reset_position_ids), title="do not reset at document ends"),),
    ),
    refuse(
        "indexer-rope",
        a.enable_dsa_indexer & (a.rope_scaling_type != "yarn"),
        message="--enable-dsa-indexer needs --rope-scaling-type yarn",
        why="before 26.1, the indexer supports only yarn rotation, so the run fails at launch",
        fixes=(put(a.rope_scaling_type, "yarn"),),
    ),
    refuse(
        "routed-scaling-factor-lost",
        FACTOR.given & (FACTOR != 0) & (FACTOR != GROUPS) & ~a.moe_router_topk_scaling_factor.given,
        severity=Severity.WARNING,
        at=(FACTOR,),
        shows={"groups": GROUPS},
        message=(
            "MindSpeed-LLM replaces --routed-scaling-factor {deprecated_routed_scaling_factor} with the "
            "value of --topk-group, {groups}; use --moe-router-topk-scaling-factor"
        ),
        why=(
            "before 26.0, the factor is filled from the wrong argument, so gates are silently scaled by the "
            "number of groups or not at all"
        ),
        fixes=(Repair((Change(FACTOR, REMOVE), Change(a.moe_router_topk_scaling_factor, FACTOR))),),
    ),
    refuse(
        "checkpoint-format-changed",
        a.ckpt_format.given & (a.ckpt_format != "torch") & ~a.use_torch_fsdp2,  # Megatron requires it there
        severity=Severity.WARNING,
        at=(a.ckpt_format,),
        message="MindSpeed-LLM replaces --ckpt-format {ckpt_format} with torch",
        why="before 26.1, MindSpeed-LLM always saves in the old format",
        fixes=(put(a.ckpt_format, "torch", safety=Safety.SAFE),),
    ),
    refuse(
        "transformer-impl-changed",
        a.transformer_impl.given & (a.transformer_impl != "local"),
        severity=Severity.WARNING,
        at=(a.transformer_impl,),
        message="MindSpeed-LLM replaces --transformer-impl {transformer_impl} with local",
        why="before 26.0, MindSpeed-LLM has only one implementation",
        fixes=(put(a.transformer_impl, "local", safety=Safety.SAFE),),
    ),
)
