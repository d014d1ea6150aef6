"""Options that say what is trained, or on what: never taken away just because they clash with another option."""

from __future__ import annotations

_NAMES = frozenset(
    [
        "num_layers",
        "encoder_num_layers",
        "hidden_size",
        "ffn_hidden_size",
        "num_attention_heads",
        "kv_channels",
        "group_query_attention",
        "num_query_groups",
        "seq_length",
        "encoder_seq_length",
        "decoder_seq_length",
        "max_position_embeddings",
        "position_embedding_type",
        "normalization",
        "swiglu",
        "squared_relu",
        "openai_gelu",
        "quick_geglu",
        "untie_embeddings_and_output_weights",
        "multi_latent_attention",
        "num_experts",
        "moe_layer_freq",
        "moe_ffn_hidden_size",
        "moe_shared_expert_intermediate_size",
        "moe_router_topk",
        "moe_grouped_gemm",
        "mtp_num_layers",
        "is_hybrid_model",
        "hybrid_layer_pattern",
        "hybrid_override_pattern",
        "spec",
        "yaml_cfg",
        "vocab_size",
        "vocab_file",
        "merge_file",
        "data_path",
        "mock_data",
        "train_data_path",
        "global_batch_size",
        "micro_batch_size",
        "train_iters",
        "train_samples",
        "lr",
        "optimizer",
        "bf16",
        "fp16",
        "save",
        "load",
        "seed",
        "weight_decay",
        "clip_grad",
        "rampup_batch_size",
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "context_parallel_size",
        "expert_model_parallel_size",
        "expert_tensor_parallel_size",
        "world_size",
        "rank",
        "use_mcore_models",
        "experimental_attention_variant",
    ]
)
# fmt: off
_FAMILIES = ("rotary_", "rope_", "q_lora", "kv_lora", "qk_", "v_head", "linear_", "mamba_", "tokenizer_",
    "num_layer_list", "init_method")
# fmt: on


def keeps(name: str) -> bool:
    """Whether an option is one of them; names that are no options count as such."""
    return name in _NAMES or name.startswith(_FAMILIES)
