"""Names that constraints over Megatron-family arguments may use: argparse destinations and derived values."""

from __future__ import annotations

from functools import cache

from preflight.dialects.megatron.options import destinations

DERIVED = frozenset(
    {
        # layout
        "world_size",
        "total_model_size",  # tp * pp * cp * gtp
        "data_parallel_size",
        "gtp_weight_remat_size",
        "expert_gtp_weight_remat_size",
        "expert_model_size",  # etp * ep * pp * egtp
        "expert_data_parallel_size",
        "transformer_pipeline_model_parallel_size",
        "virtual_pipeline_model_parallel_size",
        "hierarchical_context_parallel_product",  # None when no sizes are given
        "rank_order_pp_last",  # False with --use-tp-pp-dp-mapping
        # pipeline split
        "pipeline_num_layers",  # layers, plus one each for embedding and loss if they are counted
        "layout_num_stages",  # of --pipeline-model-parallel-layout
        "layout_num_layers",
        "layout_num_mtp",
        "hybrid_main_pattern",
        "hybrid_mtp_pattern",
        "hybrid_mtp_depths",
        "hybrid_num_segments",
        "hybrid_has_pipes",
        "layers_per_chunk",  # tuple over pipeline ranks, then virtual stages: rank 0's chunks first
        # batch and schedule
        "num_microbatches",
        "is_global_batch_size_explicitly_specified",
        "lr_decay_steps",
        "lr_warmup_steps",
        "lr_wsd_decay_steps",
        # types
        "params_dtype",  # "fp32", "fp16", "bf16"
        "pipeline_dtype",
        "gated_linear_unit",
        "activation_func",  # "gelu", "silu", "squared_relu", "quick_gelu", "openai_gelu", "fast_gelu"
        "moe_layer_pattern",  # tuple of bool per layer; None when dense
        "padded_vocab_size",
        "mtp_position_embedding_type",  # the positions that the check of multi-token prediction reads
        "cpu_offloading",
        "variable_seq_lengths",
        # switches that upstream keeps as attributes
        "use_dist_ckpt",
        "use_layer_wise_distributed_optimizer",
        "use_custom_fsdp",
        # the run around it
        "device_architecture",  # CUDA major: 9 Hopper, 10 Blackwell; 0 on other accelerators; unknown without a device
        "entry_is_known",  # the entry script defines no additional options
        "entry_is_shipped",  # releases contain the entry script, with the options that it adds there
        "entry_trains",
        "options_are_complete",  # the caller of the script adds none, and each is an option of a release
        "target_is_stated",
        "core_release",  # of Megatron-LM, even for an undescribed release
        "adam_in_place",  # MindSpeed's Adam is known to update in place
        "entry",  # name of the entry script, "" when there is none
    }
)
"""Derived values that are not argparse destinations. Destinations that upstream overwrites keep their own name."""


@cache
def megatron_names() -> frozenset[str]:
    """Every name a constraint may use, for `Handles`."""
    return destinations() | DERIVED
