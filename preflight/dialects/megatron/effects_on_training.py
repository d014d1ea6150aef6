"""The effect of an option on the training: options that are never removed, and options whose changes are reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from preflight.run.arguments import Arguments

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
        "add_qkv_bias",
        "softmax_type",
        "window_size",
        "window_attn_skip_freq",
        "moe_router_score_function",
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
        "num_nextn_predict_layers",
        "mtp_loss_scale",
        "mtp_after_norm",
        "share_mtp_embedding_and_output_weight",
        "embed_layernorm",
        "expert_interval",
        "noisy_gate_policy",
        "moe_train_capacity_factor",
        "qlora",
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
    "num_layer_list", "init_method", "retro_", "retriever_", "hybrid_", "kitchen_", "teacher_", "simpo_")
# fmt: on


def keeps(name: str) -> bool:
    """Whether an option is one of them; names that are not options count as such."""
    return name in _NAMES or name.startswith(_FAMILIES)


GPT_ENTRY = "pretrain_gpt.py"
OF_MAMBA = frozenset(("hybrid_attention_ratio", "hybrid_mlp_ratio"))
"""Options that only the model of pretrain_mamba.py reads (megatron/core/models/mamba/mamba_model.py:63@core_v0.15.0);
elsewhere they only count floating point operations (megatron/training/training.py:168)."""


def keeps_in(entry: str) -> Callable[[str], bool]:
    """The same for the runs of an entry script."""
    return (lambda name: keeps(name) and name not in OF_MAMBA) if entry == GPT_ENTRY else keeps


TRAINS_WITH: Mapping[str, tuple[str, tuple[object, ...]]] = {
    **dict.fromkeys(
        ("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"),
        ("multi_latent_attention", (True,)),
    ),
    "moe_layer_freq": ("num_experts", ()),
    "mscale_all_dim": ("multi_latent_attention", (True,)),
    "data_parallel_sharding_strategy": ("use_megatron_fsdp", (True,)),
    "muon_tp_mode": ("optimizer", ("muon", "dist_muon")),
    "tokenizer_hf_include_special_tokens": ("tokenizer_type", ("HuggingFaceTokenizer",)),
    "tokenizer_hf_use_fast": ("tokenizer_type", ("HuggingFaceTokenizer",)),
    "muon_use_nesterov": ("optimizer", ("muon", "dist_muon")),
    "retriever_seq_length": ("retro_add_retriever", (True,)),
    "retro_attention_gate": ("retro_add_retriever", (True,)),
    "retro_cyclic_train_iters": ("retro_add_retriever", (True,)),
    "retro_encoder_attention_dropout": ("retro_add_retriever", (True,)),
    "retro_encoder_hidden_dropout": ("retro_add_retriever", (True,)),
    "retro_encoder_layers": ("retro_add_retriever", (True,)),
    "retro_num_neighbors": ("retro_add_retriever", (True,)),
    "retro_num_retrieved_chunks": ("retro_add_retriever", (True,)),
    "retro_project_dir": ("retro_add_retriever", (True,)),
    "retro_verify_neighbor_count": ("retro_add_retriever", (True,)),
}
"""Options that a release removes or whose defaults it changes, and the option whose values make them matter; no values:
any that is set."""

_PARAMETERS = """num_layers encoder_num_layers decoder_num_layers hidden_size ffn_hidden_size kv_channels
    num_query_groups group_query_attention swiglu untie_embeddings_and_output_weights num_experts
    moe_layer_freq moe_ffn_hidden_size
    moe_shared_expert_intermediate_size mtp_num_layers q_lora_rank kv_lora_rank qk_head_dim qk_pos_emb_head_dim
    v_head_dim qk_rope_head_dim qk_nope_head_dim multi_latent_attention hybrid_layer_pattern lora_r vocab_size
    padded_vocab_size num_layer_list first_k_dense_replace n_shared_experts"""
_TOKENS = "seq_length encoder_seq_length global_batch_size"
_OPTIMIZER = "optimizer"
_LENGTH = "train_iters train_samples"
_SCHEDULE = """lr min_lr lr_decay_iters lr_decay_samples lr_warmup_iters lr_warmup_samples lr_warmup_fraction
    lr_decay_style weight_decay"""
_DECIDED = {
    name: what
    for names, what in (
        (_PARAMETERS, "the number of parameters"),
        (_TOKENS, "the tokens per step"),
        (_OPTIMIZER, "the optimizer"),
        (_LENGTH, "the length of the training"),
        (_SCHEDULE, "the learning rate"),
        ("micro_batch_size", "the required memory"),
    )
    for name in names.split()
}


def decides(name: str) -> str:
    """The part of the training that an option affects; "" for none."""
    return _DECIDED.get(name, "")


def decided_by(arguments: Arguments) -> Callable[[str], str]:
    """The same for one run: learned positions are parameters."""
    learned = arguments.get("position_embedding_type").raw == "learned_absolute"
    typed = arguments.given("max_position_embeddings") is not None
    table = {**_DECIDED, "max_position_embeddings": _DECIDED["num_layers"]} if learned and typed else _DECIDED
    return lambda name: table.get(name, "")
