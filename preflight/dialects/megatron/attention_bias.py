"""ALiBi's bias of attention, as MindSpeed-LLM and MindSpeed make it; Megatron-LM has none.

Source: MindSpeed-LLM v26.1.0, tasks/models/common/alibi.py (the bias, kept for good), core/transformer/
custom_dot_product_attention.py:141-155 and :291-300 (with flash attention), core/transformer/alibi_attention.py:82-112
(without); MindSpeed v26.0.0_core_r0.12.1, core/transformer/flash_attention/alibi.
"""

from __future__ import annotations

from preflight.dialects.megatron.namespace import Run

LAST = 1024
"""Rows of the bias that MindSpeed's flash attention takes as type 0 (alibi/dot_product_attention.py:37)."""


def is_counted(run: Run) -> bool:
    """Whether it is known what ALiBi allocates: not with context parallelism other than by slopes."""
    if "mindspeed" not in run.versions:
        return False
    return bool(run.context_parallel_size == 1 or run.alibi_fusion_attn_type == 2)


def pair_bias(run: Run) -> tuple[float, float, float] | None:
    """Tensors of heads x sequence² in 16 bits: for each sample those that a layer in flight keeps; those that stay;
    for each sample those that stay. None without a bias of that size."""
    if run.position_embedding_type != "alibi" or not is_counted(run) or run.alibi_fusion_attn_type == 2:
        return None
    if "mindspeed-llm" not in run.versions:
        return (0, min(1.0, LAST / run.seq_length), 0) if run.alibi_fusion_attn_type == 0 else None
    if not (run.square_alibi_mask or run.fill_neg_inf):
        return None  # one row for all queries
    return 1, 2, 1
