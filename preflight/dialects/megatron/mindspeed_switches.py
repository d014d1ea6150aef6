"""Arguments that MindSpeed and MindSpeed-LLM set by themselves where a condition holds."""

from __future__ import annotations

from collections.abc import Callable

from preflight.dialects.megatron.namespace import Run
from preflight.source.record import NamedTuple

CORE, LLM = "mindspeed/features_manager/", "mindspeed_llm/features_manager/"
RING, ULYSSES = "megatron_cp_algo", "ulysses_cp_algo"


OWN = ">=2.1"
"""The releases whose features change arguments; of those that MindSpeed-LLM 2.0 and 2.1 call (2.0.0-llm) none does."""


class Change(NamedTuple):
    """An argument that becomes `after` when a condition holds. stack: only where this framework takes part, at one of
    its `versions`."""

    name: str
    after: object
    when: Callable[[Run], object]
    cause: str
    place: str
    stack: str = "mindspeed"
    versions: str = ""


def _context(run: Run, *algorithms: str) -> bool:
    return run.context_parallel_size > 1 and run.context_parallel_algo in algorithms


def general_mask(run: Run) -> bool:
    """Whether attention needs a mask that is no plain causal one."""
    general = run.attention_mask_type == "general" and not run.reset_attention_mask
    alibi = run.position_embedding_type == "alibi" and not run.use_flash_attn
    return bool(general or alibi or run.tokenizer_padding_side == "left")


CHANGES = (
    Change(
        "use_flash_attn",
        True,
        lambda r: _context(r, RING, "hybrid_cp_algo"),
        "context parallelism needs it",
        CORE + "context_parallel/context_parallel_feature.py:51",
    ),
    Change(
        "use_flash_attn",
        True,
        lambda r: _context(r, ULYSSES),
        "context parallelism needs it",
        CORE + "context_parallel/ulysses_context_parallel.py:34",
    ),
    Change(
        "context_parallel_algo",
        ULYSSES,
        lambda r: r.tp_2d and not r.use_flash_attn and r.context_parallel_algo == RING,
        "--tp-2d without --use-flash-attn",
        CORE + "tensor_parallel/tp_2d.py:38",
        versions=OWN,
    ),
    Change(
        "recompute_in_advance",
        False,
        lambda r: r.num_layers_per_virtual_pipeline_stage not in (None, 1),
        "a virtual stage has more than one layer",
        CORE + "pipeline_parallel/ripipe_schedules_feature.py:114",
        versions=OWN,
    ),
    Change(
        "enable_gloo_process_groups",
        False,
        lambda r: r.disable_gloo_group,
        "--disable-gloo-group",
        CORE + "disable_gloo_group/disable_gloo_group_feature.py:41",
        versions=OWN,
    ),
    Change(
        "moe_permute_fusion",
        True,
        lambda r: r.use_fused_moe_token_permute_and_unpermute,
        "its older name is given",
        CORE + "fusions/fused_moe_permute.py:41",
        versions=OWN,
    ),
    Change(
        "use_fused_moe_token_permute_and_unpermute",
        True,
        lambda r: r.moe_permute_fusion,
        "the newer name is given",
        CORE + "fusions/fused_moe_permute.py:43",
        versions=OWN,
    ),
    Change(
        "recompute_granularity",
        "full",
        lambda r: r.recompute_in_bubble and not r.swap_attention,
        "--recompute-in-bubble",
        CORE + "pipeline_parallel/ripipe_schedules_feature.py:70",
    ),
    Change(
        "recompute_method",
        "block",
        lambda r: r.recompute_in_bubble and not r.swap_attention,
        "--recompute-in-bubble",
        CORE + "pipeline_parallel/ripipe_schedules_feature.py:72",
    ),
    Change(
        "overlap_param_gather_with_optimizer_step",
        False,
        lambda r: r.optimizer == "muon",
        "Muon does not support it",
        CORE + "optimizer/muon_optimizer_feature.py:129",
        versions=OWN,
    ),
    Change(
        "create_attention_mask_in_dataloader",
        False,
        lambda r: True,
        "attention makes its own mask",
        CORE + "transformer/flash_attention/generate_mask_feature.py:31",
    ),
    Change(
        "create_attention_mask_in_dataloader",
        True,
        general_mask,
        "the mask is general",
        LLM + "megatron_basic/training_basic.py:33",
        "mindspeed-llm",
        ">=26",
    ),
    Change(
        "log_throughput",
        False,
        lambda r: r.no_pad_to_seq_lengths,
        "--no-pad-to-seq-lengths",
        LLM + "finetune/finetune.py:34",
        "mindspeed-llm",
    ),
    Change(
        "kv_head_repeat_before_uly_alltoall",
        False,
        lambda r: r.context_parallel_size <= 1,
        "there is no context parallelism",
        LLM + "context_parallel/ulysses_context_parallel.py:24",
        "mindspeed-llm",
    ),
    Change(
        "output_layer_slice_num",
        1,
        lambda r: True,
        "MindSpeed-LLM does not support it",
        "mindspeed_llm/training/arguments.py:175",
        "mindspeed-llm",
        ">=2.2",
    ),
    Change(
        "shape_order",
        "TND",
        lambda r: r.reset_attention_mask,
        "--reset-attention-mask",
        LLM + "megatron_basic/training_basic.py:20",
        "mindspeed-llm",
        ">=2.3",
    ),
    Change(
        "shape_order",
        "TND",
        lambda r: r.reset_position_ids,
        "--reset-position-ids",
        LLM + "megatron_basic/training_basic.py:20",
        "mindspeed-llm",
        "<2.3",
    ),
    Change(
        "variable_seq_lengths",
        True,
        lambda r: r.no_pad_to_seq_lengths,
        "--no-pad-to-seq-lengths",
        LLM + "finetune/finetune.py:43",
        "mindspeed-llm",
    ),
    Change(
        "variable_seq_lengths",
        True,
        lambda r: r.reset_attention_mask and r.attention_mask_type == "causal" and _context(r, RING),
        "ring attention pads samples",
        LLM + "finetune/finetune.py:47",
        "mindspeed-llm",
        ">=2.3",
    ),
)
