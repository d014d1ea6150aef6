"""The effect of a key on the training: keys that are never removed, and keys whose changes are reported."""

from __future__ import annotations

# fmt: off
_SECTIONS = ("model", "net", "optimizer", "lr_schedule", "train_dataset", "eval_dataset", "dataset", "data",
    "processor", "trainer", "runner_wrapper")
# fmt: on
_NAMES = frozenset(
    """run_mode seed load_checkpoint output_dir use_parallel use_legacy pretrained_model_dir
    runner_config runner_config.epochs runner_config.batch_size runner_config.gradient_accumulation_steps
    parallel_config parallel_config.data_parallel parallel_config.model_parallel parallel_config.pipeline_stage
    parallel_config.micro_batch_num parallel_config.context_parallel parallel_config.expert_parallel
    recompute_config parallel context moe_config parallelism
    training training.local_batch_size training.global_batch_size training.steps""".split()
)


def keeps(name: str) -> bool:
    """Whether a key is one of them, or is in a section of such keys."""
    return name in _NAMES or name.partition(".")[0] in _SECTIONS


_PARAMETERS = frozenset(
    """num_layers num_hidden_layers hidden_size intermediate_size n_kv_heads num_key_value_heads num_query_groups
    vocab_size num_experts expert_num n_routed_experts moe_intermediate_size ffn_hidden_size multiple_of
    ffn_dim_multiplier q_lora_rank kv_lora_rank qk_nope_head_dim qk_rope_head_dim v_head_dim head_dim lora_rank
    tie_word_embeddings mtp_depth""".split()
)
_DECIDED = {
    "runner_config.batch_size": "the tokens per step",
    "runner_config.gradient_accumulation_steps": "the tokens per step",
    "parallel_config.micro_batch_num": "the tokens per step",
    "parallel_config.data_parallel": "the tokens per step",
    "training.local_batch_size": "the tokens per step",
    "training.global_batch_size": "the tokens per step",
    "runner_config.epochs": "the length of the training",
    "training.steps": "the length of the training",
    "optimizer.type": "the optimizer",
    "lr_schedule.learning_rate": "the learning rate",
    "lr_schedule.lr_end": "the learning rate",
    "lr_schedule.warmup_ratio": "the learning rate",
    "lr_schedule.warmup_steps": "the learning rate",
}


def decides(name: str) -> str:
    """The part of the training that a key affects; "" for none."""
    section, _, last = name.partition(".")[0], "", name.rpartition(".")[2]
    if section in ("model", "net") and last == "seq_length":
        return "the tokens per step"
    if section in ("model", "net") and last in _PARAMETERS:
        return "the number of parameters"
    return _DECIDED.get(name, "")
