"""Checks of latent attention, its indexer, and hyper-connections in MindSpeed-LLM."""

from __future__ import annotations

from preflight.lint.constraint import ConstraintSet, drop, in_range, put, refuse
from preflight.rules.mindspeed.shorthand import a, needs

PACKED = "only the fused kernels support packed documents, so the run fails at launch"
MINDSPEED_LLM = ConstraintSet("mindspeed-llm", why=PACKED)
MLA, DSA, QUANT = a.multi_latent_attention, a.enable_dsa_indexer, a.indexer_qk_quant_scheme
RESET = DSA & a.reset_attention_mask
BAD_ALGO = (a.context_parallel_size > 1) & ~a.context_parallel_algo.is_in("ulysses_cp_algo", "kvallgather_cp_algo")
LATENT = "the option is part of latent attention and cannot work without it, so the run fails at launch"
ALGO = "the indexer needs the keys of all ranks and does not support the other algorithms, so the run fails at launch"

MINDSPEED_LLM.add(
    in_range(
        "mla-padded-length",
        a.padded_base_length,
        low=1,
        when=MLA,
        message="--padded-base-length {padded_base_length} must be at least 1",
        why=(
            "head sizes are padded to multiples of --padded-base-length, which must be positive; otherwise, the run "
            "fails at launch"
        ),
        fixes=(drop(a.padded_base_length),),
    ),
    refuse(
        "mla-overlap-split",
        MLA & a.mla_up_proj_tp_overlap & ~a.mla_mm_split,
        at=(a.mla_up_proj_tp_overlap,),
        message="--mla-up-proj-tp-overlap needs --mla-mm-split",
        why="the overlap can only run between the split matrix products, so the run fails at launch",
        fixes=(put(a.mla_mm_split), drop(a.mla_up_proj_tp_overlap)),
    ),
    refuse(
        "mla-overlap-sequence-parallel",
        MLA & a.mla_up_proj_tp_overlap & ~a.sequence_parallel,
        at=(a.mla_up_proj_tp_overlap,),
        message="--mla-up-proj-tp-overlap needs --sequence-parallel (and tensor parallelism)",
        why=(
            "the overlap hides the all-gather of the sequence, which exists only with sequence parallelism, so the "
            "run fails at launch"
        ),
        fixes=(put(a.sequence_parallel), drop(a.mla_up_proj_tp_overlap)),
    ),
    refuse(
        "mla-recompute-tensor",
        MLA & a.recompute_mla_up_proj & ~a.mla_up_proj_tp_overlap & (a.tensor_model_parallel_size != 1),
        at=(a.recompute_mla_up_proj, a.tensor_model_parallel_size),
        message=(
            "--recompute-mla-up-proj at a tensor-parallel size of {tensor_model_parallel_size} needs "
            "--mla-up-proj-tp-overlap"
        ),
        why="recomputing the product would gather the sequence again, so the run fails at launch",
        fixes=(put(a.mla_up_proj_tp_overlap), drop(a.recompute_mla_up_proj)),
    ),
    refuse(
        "mla-recompute-overlap",
        MLA & a.recompute_mla_up_proj & ~a.mla_up_proj_tp_overlap,
        at=(a.recompute_mla_up_proj,),
        message="--recompute-mla-up-proj needs --mla-up-proj-tp-overlap",
        why="this release also requires the overlap at a tensor-parallel size of 1, so the run fails at launch",
        fixes=(put(a.mla_up_proj_tp_overlap), drop(a.recompute_mla_up_proj)),
    ),
    refuse(
        "mla-recompute-zero-memory",
        MLA & a.recompute_mla_up_proj & a.mla_zero_memory,
        at=(a.recompute_mla_up_proj, a.mla_zero_memory),
        message="--recompute-mla-up-proj does not work with --mla-zero-memory",
        why="both options free the same activations, but only one of them may do so, so the run fails at launch",
        fixes=(drop(a.recompute_mla_up_proj), drop(a.mla_zero_memory)),
    ),
    refuse(
        "mla-swap-schedule",
        MLA & a.mla_swap_core_attn_out & (a.schedules_method.is_none | (a.schedules_method != "dualpipev")),
        at=(a.mla_swap_core_attn_out,),
        message="--mla-swap-core-attn-out needs --schedules-method dualpipev",
        why="only the dualpipev schedule controls the timing of the swap, so the run fails at launch",
        fixes=(drop(a.mla_swap_core_attn_out),),
    ),
    refuse(
        "mla-swap-overlap",
        MLA & a.mla_swap_core_attn_out & ~a.moe_fb_overlap,
        at=(a.mla_swap_core_attn_out,),
        message="--mla-swap-core-attn-out needs --moe-fb-overlap",
        why="the swap can only run inside the overlap, so the run fails at launch",
        fixes=(drop(a.mla_swap_core_attn_out),),
    ),
    needs("indexer-latent-attention", DSA, MLA, at=(DSA,), why=LATENT),
    needs(
        "indexer-flash-attention",
        DSA,
        a.use_flash_attn,
        at=(DSA,),
        why="the indexer selects keys only for the flash-attention kernel, so the run fails at launch",
    ),
    refuse(
        "indexer-context-algo",
        DSA & BAD_ALGO,
        at=(a.context_parallel_algo, DSA),
        why=ALGO,
        message=(
            "--enable-dsa-indexer with context parallelism needs ulysses_cp_algo or kvallgather_cp_algo, "
            "not {context_parallel_algo}"
        ),
        fixes=(put(a.context_parallel_algo, "ulysses_cp_algo"), put(a.context_parallel_algo, "kvallgather_cp_algo")),
    ),
    refuse(
        "indexer-reset-mask-indexer",
        RESET & ~a.use_fused_lightning_indexer,
        at=(a.reset_attention_mask, DSA),
        message="--enable-dsa-indexer with --reset-attention-mask needs --use-fused-lightning-indexer",
        fixes=(put(a.use_fused_lightning_indexer),),
    ),
    refuse(
        "indexer-reset-mask-loss",
        RESET & ~a.use_fused_lightning_indexer_loss,
        at=(a.reset_attention_mask, DSA),
        message="--enable-dsa-indexer with --reset-attention-mask needs --use-fused-lightning-indexer-loss",
        fixes=(put(a.use_fused_lightning_indexer_loss),),
    ),
    refuse(
        "indexer-reset-mask-attention",
        RESET & ~a.use_sparse_flash_attn,
        at=(a.reset_attention_mask, DSA),
        message="--enable-dsa-indexer with --reset-attention-mask needs --use-sparse-flash-attn",
        fixes=(put(a.use_sparse_flash_attn),),
    ),
    refuse(
        "indexer-quant-alone",
        QUANT.is_set & ~DSA,
        at=(QUANT,),
        message="--indexer-qk-quant-scheme needs --enable-dsa-indexer",
        why="without the indexer, there is nothing to quantize, so the run fails at launch",
        fixes=(drop(QUANT), put(DSA)),
    ),
    refuse(
        "indexer-quant-compress",
        QUANT.is_set & ~a.kv_compress,
        at=(QUANT,),
        message="--indexer-qk-quant-scheme needs --kv-compress",
        why="only compressed keys can be quantized, so the run fails at launch",
        fixes=(put(a.kv_compress), drop(QUANT)),
    ),
    refuse(
        "indexer-quant-fused",
        QUANT.is_set & a.use_fused_lightning_indexer,
        message="--indexer-qk-quant-scheme does not work with --use-fused-lightning-indexer",
        why="the fused kernel can only read unquantized keys, so the run fails at launch",
        fixes=(drop(QUANT), drop(a.use_fused_lightning_indexer)),
    ),
)
