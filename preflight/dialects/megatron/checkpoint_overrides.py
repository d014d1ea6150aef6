"""--use-checkpoint-args: the checkpoint determines the model and overrides options and defaults."""

from __future__ import annotations

from preflight.dialects.megatron.derivation_namespace import Run

FORCED = frozenset(
    [
        "num_query_groups",
        "group_query_attention",
        "position_embedding_type",
        "add_position_embedding",
        "use_rotary_position_embeddings",
        "rotary_base",
        "rotary_percent",
        "rotary_interleaved",
        "add_bias_linear",
        "add_qkv_bias",
        "squared_relu",
        "swiglu",
        "untie_embeddings_and_output_weights",
        "apply_layernorm_1p",
        "normalization",
        "apply_query_key_layer_scaling",
        "attention_dropout",
        "hidden_dropout",
        "mtp_hybrid_override_pattern",
        "mtp_num_layers",
        "mtp_use_repeated_layer",
        "spec",
        "num_experts",
        "moe_layer_freq",
        "moe_ffn_hidden_size",
        "moe_router_topk",
        "moe_router_pre_softmax",
        "moe_grouped_gemm",
        "moe_single_grouped_weight",
        "moe_single_grouped_bias",
        "moe_shared_expert_intermediate_size",
        "moe_router_score_function",
        "moe_router_enable_expert_bias",
        "moe_router_topk_scaling_factor",
        "mamba_state_dim",
        "mamba_head_dim",
        "mamba_num_groups",
        "mamba_num_heads",
        "gdp_num_householder",
        "heterogeneous_layers_config_path",
        "heterogeneous_layers_config_encoded_json",
        "moe_latent_size",
        "tokenizer_model",
        "tokenizer_type",
        "tiktoken_pattern",
    ]
)
"""Values that the checkpoint overrides."""

FILLED = frozenset(
    [
        "num_layers",
        "hidden_size",
        "ffn_hidden_size",
        "seq_length",
        "num_attention_heads",
        "kv_channels",
        "max_position_embeddings",
        "moe_token_dispatcher_type",
        "hybrid_layer_pattern",
        "padded_vocab_size",
        "ckpt_format",
    ]
)
"""Values that the checkpoint sets if nothing else does."""

PARALLEL = frozenset(
    [
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "expert_model_parallel_size",
        "virtual_pipeline_model_parallel_size",
        "num_layers_per_virtual_pipeline_stage",
    ]
)
"""Values that it overrides with --use-mp-args-from-checkpoint-args, and before 0.10 without it, except expert parallel
sizes (core_v0.9.0, megatron/training/checkpointing.py:971)."""
MODEL_PARALLEL = "use_mp_args_from_checkpoint_args"


def from_checkpoint(run: Run) -> None:
    """Mark everything as unknown that the checkpoint may set."""
    if not _typed(run, "use_checkpoint_args"):
        return
    names = FORCED | {name for name in FILLED if run.written.get(name) is None}
    if _typed(run, MODEL_PARALLEL):
        names |= PARALLEL
    elif MODEL_PARALLEL not in run.table.defaults:
        names |= PARALLEL - {"expert_model_parallel_size"}
    for name in names:
        if name in run.table.defaults or name in PARALLEL:
            run.settled.add(name)
            run.lose(name, "--use-checkpoint-args reads the value from the checkpoint")


def _typed(run: Run, name: str) -> bool:
    """Whether a switch is on, or may be on in one branch of a condition."""
    given = run.written.get(name)
    return given is not None and given.raw is not False
