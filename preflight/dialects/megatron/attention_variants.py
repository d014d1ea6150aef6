"""Linear and sparse attention of a Megatron or MindSpeed-LLM run."""

from __future__ import annotations

from preflight.dialects.megatron.namespace import Run
from preflight.run.attention import LinearAttention, SparseAttention

DELTA_RULES = ("gated_delta_net", "gdn")


def variant(run: Run) -> LinearAttention | SparseAttention | None:
    """What stands in for attention in a run."""
    return _linear(run) or _sparse(run)


def _linear(run: Run) -> LinearAttention | None:
    """Gated delta rules in the layers that a frequency leaves (core_v0.16.0 megatron/training/training.py:464-492;
    MindSpeed-LLM v26.1.0 mindspeed_llm/core/transformer/transformer_block.py:176)."""
    if run.experimental_attention_variant in DELTA_RULES:
        every, kernel = run.linear_attention_freq, run.linear_conv_kernel_dim
    elif run.full_attention_interval:
        every, kernel = run.full_attention_interval, None
    else:
        return None
    layers = run.num_layers
    pattern = every if isinstance(every, (list, tuple)) else [(i + 1) % every != 0 for i in range(layers)]
    return LinearAttention(
        sum(map(bool, pattern)) / layers, run.linear_num_key_heads, run.linear_key_head_dim,
        run.linear_num_value_heads, run.linear_value_head_dim, kernel or 4,
    )  # fmt: skip


def _sparse(run: Run) -> SparseAttention | None:
    """Attention to the keys that an indexer chooses; other kinds of compressed keys are not known."""
    if run.kv_compress:
        return None
    if run.experimental_attention_variant == "dsa":
        return SparseAttention(
            run.dsa_indexer_n_heads, run.dsa_indexer_head_dim, run.dsa_indexer_topk,
            1 / max(run.dsa_indexer_topk_freq or 1, 1), run.dsa_kernel_backend not in (None, "none"),
            bool(run.dsa_indexer_loss_coeff),
        )  # fmt: skip
    if run.enable_dsa_indexer:
        fused = bool(run.use_fused_lightning_indexer and run.use_sparse_flash_attn)
        return SparseAttention(
            run.index_n_heads, run.index_head_dim, run.index_topk, 1 / max(run.index_topk_freq or 1, 1), fused,
            bool(run.indexer_loss_coeff),
        )  # fmt: skip
    return None
