"""What of the training an option decides, so that a change of it is said, and a missing one is not invented."""

from __future__ import annotations

from collections.abc import Callable

from preflight.run.arguments import Arguments

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
        ("micro_batch_size", "the memory that is needed"),
    )
    for name in names.split()
}


def decides(name: str) -> str:
    """What of the training an option decides; "" for none of it."""
    return _DECIDED.get(name, "")


def decided_by(arguments: Arguments) -> Callable[[str], str]:
    """The same for one run: learned positions are parameters."""
    learned = arguments.get("position_embedding_type").raw == "learned_absolute"
    typed = arguments.given("max_position_embeddings") is not None
    table = {**_DECIDED, "max_position_embeddings": _DECIDED["num_layers"]} if learned and typed else _DECIDED
    return lambda name: table.get(name, "")
