"""Checks of MindSpeed's attention variants: masks, position biases, sparse attention and latent attention."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, drop, one_of, put, refuse
from preflight.lint.expressions import any_of
from preflight.rules.mindspeed.shorthand import a

MINDSPEED = ConstraintSet("mindspeed")
FUSED = (a.use_fused_lightning_indexer, a.use_fused_sparse_flash_attention, a.use_fused_lightning_indexer_kl_loss)
ALL_FUSED = FUSED[0] & FUSED[1] & FUSED[2] & a.use_dsa_absorb
CORE_ONLY = "mindspeed-llm"

MINDSPEED.add(
    one_of(
        "sparse-mode",
        a.sparse_mode,
        (0, 2),
        when=a.use_flash_attn,
        at=(a.sparse_mode,),
        message="--sparse-mode {sparse_mode} does not work with flash attention; only 0 and 2 do",
        why="the flash-attention kernel supports only sparse modes 0 and 2, so the run fails at launch",
        fixes=(drop(a.sparse_mode), put(a.sparse_mode, 2)),
    ),
    one_of(
        "alibi-kind",
        a.alibi_fusion_attn_type,
        (0, 2),
        when=a.alibi_fusion_attn_type.is_set,
        unless_framework=CORE_ONLY,
        message="--alibi-fusion-attn-type must be 0 or 2, not {alibi_fusion_attn_type}",
        why="the kernel supports only types 0 and 2 of the position bias, so the run fails at launch",
        fixes=(put(a.alibi_fusion_attn_type, 2),),
    ),
    refuse(
        "fused-rope",
        a.use_fused_rotary_pos_emb & (a.position_embedding_type != "rope"),
        unless_framework=CORE_ONLY,
        message="--use-fused-rotary-pos-emb needs --position-embedding-type rope, not {position_embedding_type}",
        why="without rotary positions, there is nothing to fuse, so the run fails at launch",
        fixes=(put(a.position_embedding_type, "rope"), drop(a.use_fused_rotary_pos_emb)),
    ),
    refuse(
        "dsa-qk-layernorm",
        (a.experimental_attention_variant == "dsa") & ~a.qk_layernorm,
        at=(a.experimental_attention_variant,),
        unless_framework=CORE_ONLY,
        message="--experimental-attention-variant dsa needs --qk-layernorm",
        why="the latent projections need the norm, so the run fails at launch",
        fixes=(put(a.qk_layernorm),),
    ),
    refuse(
        "dsa-fused-together",
        any_of(*FUSED) & ~ALL_FUSED,
        at=FUSED,
        unless_framework=CORE_ONLY,
        message="the fused sparse-attention kernels work only if all three of them and --use-dsa-absorb are on",
        why="each kernel reads the output of the others, so one kernel alone cannot work, and the run fails at launch",
        fixes=(drop(also=FUSED, title="remove the fused kernels"),),
    ),
    refuse(
        "dsa-context-algo",
        any_of(*FUSED) & ALL_FUSED & (a.context_parallel_size > 1) & (a.context_parallel_algo != "kvallgather_cp_algo"),
        at=(a.context_parallel_algo, a.context_parallel_size),
        unless_framework=CORE_ONLY,
        message="fused sparse attention needs kvallgather_cp_algo, not {context_parallel_algo}",
        why=(
            "the indexer needs the keys of all ranks and does not support the other algorithms, so the run fails at "
            "launch"
        ),
        fixes=(put(a.context_parallel_algo, "kvallgather_cp_algo"),),
    ),
    refuse(
        "latent-rope-size",
        a.multi_head_latent_attention & a.qk_rope_head_dim.is_none,
        at=(a.multi_head_latent_attention,),
        unless_framework=CORE_ONLY,
        message="--multi-head-latent-attention needs --qk-rope-head-dim",
        why="the size of the rotated part of each head is not defined, so the run fails at launch",
        fixes=(put(a.qk_rope_head_dim, 64),),
    ),
    refuse(
        "latent-plain-size",
        a.multi_head_latent_attention & a.qk_rope_head_dim.is_set & a.qk_nope_head_dim.is_none,
        at=(a.multi_head_latent_attention,),
        unless_framework=CORE_ONLY,
        message="--multi-head-latent-attention needs --qk-nope-head-dim",
        why="the size of the unrotated part of each head is not defined, so the run fails at launch",
        fixes=(put(a.qk_nope_head_dim, 128),),
    ),
    refuse(
        "pipeline-layers-noop",
        a.pipeline_num_transformer_layers.is_set & a.noop_layers.is_set,
        at=(a.noop_layers, a.pipeline_num_transformer_layers),
        message="--pipeline-num-transformer-layers does not work with --noop-layers",
        why="both options assign layers to stages, but only one of them may do so, so the run fails at launch",
        fixes=(drop(a.noop_layers), drop(a.pipeline_num_transformer_layers)),
    ),
)
