"""Keys that say what is trained, or on what: never taken away just because their value is refused."""

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
    """Whether a key is one of them, or stands in a section of such keys."""
    return name in _NAMES or name.partition(".")[0] in _SECTIONS
