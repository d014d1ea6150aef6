"""MindSpeed-LLM: latent attention, its indexer, and hyper-connections."""

from __future__ import annotations

from preflight.constraints.shapes import ConstraintSet, drop, in_range, put, refuse
from preflight.rules.mindspeed.shorthand import LLM, a, needs

MINDSPEED_LLM = ConstraintSet("mindspeed-llm")
MLA_FILE, DSA_FILE = f"{LLM}transformer/multi_latent_attention/mla_feature.py", f"{LLM}transformer/multi_latent_attention/dsa_indexer_feature.py"
MLA, DSA, QUANT = a.multi_latent_attention, a.enable_dsa_indexer, a.indexer_qk_quant_scheme
RESET = DSA & a.reset_attention_mask
BAD_ALGO = (a.context_parallel_size > 1) & ~a.context_parallel_algo.is_in("ulysses_cp_algo", "kvallgather_cp_algo")
PACKED = "packed documents go through the fused kernels only; dies at launch"
LATENT = "it is built into latent attention; dies at launch"
ALGO = "the keys of all ranks are scored; dies at launch"

MINDSPEED_LLM.add(
    in_range(
        "mla-padded-length",
        a.padded_base_length,
        low=1,
        when=MLA,
        upstream=f"{MLA_FILE}:80",
        message="--padded-base-length {padded_base_length} must be at least 1",
        why="head sizes are padded to its multiples; dies at launch",
        fixes=(drop(a.padded_base_length),),
        versions=">=26",
    ),
    refuse(
        "mla-overlap-split",
        MLA & a.mla_up_proj_tp_overlap & ~a.mla_mm_split,
        upstream=f"{MLA_FILE}:83",
        at=(a.mla_up_proj_tp_overlap,),
        message="--mla-up-proj-tp-overlap needs --mla-mm-split",
        why="the overlap runs between the split products; dies at launch",
        fixes=(put(a.mla_mm_split), drop(a.mla_up_proj_tp_overlap)),
        versions=">=26",
    ),
    refuse(
        "mla-overlap-sequence-parallel",
        MLA & a.mla_up_proj_tp_overlap & ~a.sequence_parallel,
        upstream=f"{MLA_FILE}:85",
        at=(a.mla_up_proj_tp_overlap,),
        message="--mla-up-proj-tp-overlap needs --sequence-parallel (and tensor parallelism)",
        why="it hides the gathering of the sequence; dies at launch",
        fixes=(put(a.sequence_parallel), drop(a.mla_up_proj_tp_overlap)),
        versions=">=26",
    ),
    refuse(
        "mla-recompute-tensor",
        MLA & a.recompute_mla_up_proj & ~a.mla_up_proj_tp_overlap & (a.tensor_model_parallel_size != 1),
        upstream=f"{MLA_FILE}:89",
        at=(a.recompute_mla_up_proj, a.tensor_model_parallel_size),
        message="--recompute-mla-up-proj at tensor parallel {tensor_model_parallel_size} needs --mla-up-proj-tp-overlap",
        why="the recomputed product would gather the sequence again; dies at launch",
        fixes=(put(a.mla_up_proj_tp_overlap), drop(a.recompute_mla_up_proj)),
        versions=">=26",
    ),
    refuse(
        "mla-recompute-zero-memory",
        MLA & a.recompute_mla_up_proj & a.mla_zero_memory,
        upstream=f"{MLA_FILE}:94",
        at=(a.recompute_mla_up_proj, a.mla_zero_memory),
        message="--recompute-mla-up-proj does not work together with --mla-zero-memory",
        why="both free the same activations; dies at launch",
        fixes=(drop(a.recompute_mla_up_proj), drop(a.mla_zero_memory)),
        versions=">=26",
    ),
    refuse(
        "mla-swap-schedule",
        MLA & a.mla_swap_core_attn_out & (a.schedules_method.is_none | (a.schedules_method != "dualpipev")),
        upstream=f"{MLA_FILE}:97",
        at=(a.mla_swap_core_attn_out,),
        message="--mla-swap-core-attn-out needs --schedules-method dualpipev",
        why="the swap is timed by that schedule; dies at launch",
        fixes=(drop(a.mla_swap_core_attn_out),),
        versions=">=26",
    ),
    refuse(
        "mla-swap-overlap",
        MLA & a.mla_swap_core_attn_out & ~a.moe_fb_overlap,
        upstream=f"{MLA_FILE}:99",
        at=(a.mla_swap_core_attn_out,),
        message="--mla-swap-core-attn-out needs --moe-fb-overlap",
        why="the swap runs inside that overlap; dies at launch",
        fixes=(drop(a.mla_swap_core_attn_out),),
        versions=">=26",
    ),
    needs("indexer-latent-attention", DSA, MLA, upstream=f"{DSA_FILE}:114", at=(DSA,), why=LATENT, versions=">=2.3"),
    needs(
        "indexer-flash-attention",
        DSA,
        a.use_flash_attn,
        upstream=f"{DSA_FILE}:118",
        at=(DSA,),
        why="it selects keys for the flash kernel; dies at launch",
        versions=">=2.3",
    ),
    refuse(
        "indexer-context-algo",
        DSA & BAD_ALGO,
        upstream=f"{DSA_FILE}:123",
        at=(a.context_parallel_algo, DSA),
        why=ALGO,
        message="--enable-dsa-indexer with context parallelism needs ulysses_cp_algo or kvallgather_cp_algo, not {context_parallel_algo}",
        fixes=(put(a.context_parallel_algo, "ulysses_cp_algo"), put(a.context_parallel_algo, "kvallgather_cp_algo")),
        versions=">=26",
    ),
    refuse(
        "indexer-reset-mask-indexer",
        RESET & ~a.use_fused_lightning_indexer,
        upstream=f"{DSA_FILE}:126",
        at=(a.reset_attention_mask, DSA),
        why=PACKED,
        message="--enable-dsa-indexer with --reset-attention-mask needs --use-fused-lightning-indexer",
        fixes=(put(a.use_fused_lightning_indexer),),
        versions=">=26.1",
    ),
    refuse(
        "indexer-reset-mask-loss",
        RESET & ~a.use_fused_lightning_indexer_loss,
        upstream=f"{DSA_FILE}:128",
        at=(a.reset_attention_mask, DSA),
        why=PACKED,
        message="--enable-dsa-indexer with --reset-attention-mask needs --use-fused-lightning-indexer-loss",
        fixes=(put(a.use_fused_lightning_indexer_loss),),
        versions=">=26.1",
    ),
    refuse(
        "indexer-reset-mask-attention",
        RESET & ~a.use_sparse_flash_attn,
        upstream=f"{DSA_FILE}:130",
        at=(a.reset_attention_mask, DSA),
        why=PACKED,
        message="--enable-dsa-indexer with --reset-attention-mask needs --use-sparse-flash-attn",
        fixes=(put(a.use_sparse_flash_attn),),
        versions=">=26.1",
    ),
    refuse(
        "indexer-quant-alone",
        QUANT.is_set & ~DSA,
        upstream=f"{DSA_FILE}:133",
        at=(QUANT,),
        message="--indexer-qk-quant-scheme needs --enable-dsa-indexer",
        why="there is nothing to quantise; dies at launch",
        fixes=(drop(QUANT), put(DSA)),
        versions=">=26.1",
    ),
    refuse(
        "indexer-quant-compress",
        QUANT.is_set & ~a.kv_compress,
        upstream=f"{DSA_FILE}:138",
        at=(QUANT,),
        message="--indexer-qk-quant-scheme needs --kv-compress",
        why="only compressed keys are quantised; dies at launch",
        fixes=(put(a.kv_compress), drop(QUANT)),
        versions=">=26.1",
    ),
    refuse(
        "indexer-quant-fused",
        QUANT.is_set & a.use_fused_lightning_indexer,
        upstream=f"{DSA_FILE}:143",
        at=(QUANT, a.use_fused_lightning_indexer),
        message="--indexer-qk-quant-scheme does not work together with --use-fused-lightning-indexer",
        why="the fused kernel reads unquantised keys; dies at launch",
        fixes=(drop(QUANT), drop(a.use_fused_lightning_indexer)),
        versions=">=26.1",
    ),
)
