"""Checks that MindSpeed-LLM 2.0 and 2.1 make on context parallelism, masks and positions."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.rules.mindspeed.shorthand import a, clash, needs

ON = a.context_parallel_size > 1
YARN = a.rope_scaling_type == "yarn"
POSITIONS = a.rope_scaling_original_max_position_embeddings
OTHER_FACTOR = (POSITIONS > 0) & (a.max_position_embeddings != a.rope_scaling_factor * POSITIONS)

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MINDSPEED_LLM.add(
    refuse(
        "ring-update-without-context",
        a.use_fused_ring_attention_update & ~ON,
        message="--use-fused-ring-attention-update needs context parallelism, but the context-parallel size is 1",
        why="without context parallelism, there is no ring to update, so the run fails at launch",
        fixes=(drop(a.use_fused_ring_attention_update),),
    ),
    refuse(
        "context-legacy-models",
        ON & ~a.use_mcore_models,
        at=(a.context_parallel_size,),
        message="a context-parallel size of {context_parallel_size} needs --use-mcore-models",
        why="legacy models do not support context parallelism, so the run fails at launch",
        fixes=(put(a.use_mcore_models),),
    ),
    refuse(
        "general-mask-micro-batch",
        ON
        & (a.context_parallel_algo != "ulysses_cp_algo")
        & (a.cp_attention_mask_type == "general")
        & (a.micro_batch_size != 1),
        at=(a.micro_batch_size, a.cp_attention_mask_type),
        message=(
            "--cp-attention-mask-type general with context parallelism needs "
            "--micro-batch-size 1, not {micro_batch_size}"
        ),
        why="the mask can only be split correctly for one sample, so the run fails at launch",
        fixes=(put(a.micro_batch_size, 1),),
    ),
    refuse(
        "context-any-sliding-window",
        ON & a.sliding_window.is_set & (a.sliding_window != 0),
        at=(a.sliding_window, a.context_parallel_size),
        message="context parallelism does not work with --sliding-window",
        why="before 2.2, no algorithm supports windows, so the run fails at launch",
        fixes=(drop(a.sliding_window),),
    ),
    clash(
        "glm-rope-fused",
        a.use_glm_rope,
        a.use_fused_rotary_pos_emb,
        why=(
            "the fused kernel always rotates the whole head, but --use-glm-rope rotates only part of the head, so "
            "the run fails at launch"
        ),
    ),
    refuse(
        "alibi-sliding-window",
        (a.position_embedding_type == "alibi") & a.sliding_window.is_set,
        at=(a.sliding_window, a.position_embedding_type),
        message="ALiBi does not work with --sliding-window",
        why="the position bias would replace the window mask, so the run fails at launch",
        fixes=(drop(a.sliding_window),),
    ),
    refuse(
        "alibi-left-padding",
        (a.position_embedding_type == "alibi") & (a.tokenizer_padding_side == "left"),
        at=(a.tokenizer_padding_side, a.position_embedding_type),
        message="ALiBi does not work with --tokenizer-padding-side left",
        why=(
            "the position bias counts positions from the left, so the padding must be on the right; otherwise, the "
            "run fails at launch"
        ),
        fixes=(put(a.tokenizer_padding_side, "right"),),
    ),
    refuse(
        "fused-rope-position-kind",
        a.use_fused_rotary_pos_emb & (a.position_embedding_type != "rope"),
        message="--use-fused-rotary-pos-emb needs --position-embedding-type rope, not {position_embedding_type}",
        why="without rotary positions, there is nothing to rotate, so the run fails at launch",
        fixes=(put(a.position_embedding_type, "rope"), drop(a.use_fused_rotary_pos_emb)),
    ),
    refuse(
        "yarn-positions",
        YARN & POSITIONS.is_none,
        at=(a.rope_scaling_type,),
        message="yarn needs --rope-scaling-original-max-position-embeddings",
        why="the scaling is computed from the missing option, so the run fails at launch",
        fixes=(drop(a.rope_scaling_type),),
    ),
    refuse(
        "yarn-latent-factor",
        YARN & POSITIONS.is_set & a.multi_head_latent_attention & (a.rope_scaling_factor == 0),
        at=(a.rope_scaling_factor, a.rope_scaling_type),
        message="yarn needs --rope-scaling-factor",
        why="positions are divided by the scaling factor, which must not be 0; otherwise, the run fails at launch",
        fixes=(drop(a.rope_scaling_type),),
    ),
    refuse(
        "yarn-factor",
        YARN & OTHER_FACTOR,
        at=(a.rope_scaling_factor, a.max_position_embeddings, POSITIONS),
        message=(
            "--rope-scaling-factor {rope_scaling_factor} must equal --max-position-embeddings "
            "{max_position_embeddings} / --rope-scaling-original-max-position-embeddings "
            "{rope_scaling_original_max_position_embeddings}"
        ),
        why="release 2.1 requires that the factor matches exactly, so the run fails at launch",
        after=("mindspeed-llm/yarn-latent-factor",),
        fixes=(put(a.max_position_embeddings, a.rope_scaling_factor * POSITIONS),),
    ),
    needs(
        "share-memory-positions",
        a.enable_share_memory,
        a.reset_position_ids,
        why=(
            "the shared data are the ends of the samples, which exist only with --reset-position-ids, so the run "
            "fails at launch"
        ),
    ),
    refuse(
        "share-memory-alibi",
        a.enable_share_memory & a.reset_position_ids & (a.position_embedding_type == "alibi"),
        at=(a.enable_share_memory, a.position_embedding_type),
        message="--enable-share-memory does not work with ALiBi",
        why="ALiBi does not support samples of different lengths, so the run fails at launch",
        fixes=(drop(a.enable_share_memory),),
    ),
)
