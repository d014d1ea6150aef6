"""Every name that a constraint over pynative configs may use."""

from __future__ import annotations

from preflight.dialects.mindformers.pynative_model import NAMES
from preflight.dialects.mindformers.pynative_schema import defaults

_DERIVED = (
    "world",
    "distributed",
    "data_parallel",
    "data_parallel_replicate",
    "micro_batches",
    "stages",
    "schedule",
    "context_method",
    "ulysses",
)
_SECTIONS = (
    "inference",
    "lora_config",
    "swap",
    "recompute",
    "parallelism",
    "train_dataset.dataloader.type",
    "lr_scheduler.type",
    "model.model_type",
)
_OPEN = (
    *(
        "optimizer.enable_cpu_offload",
        "optimizer.swap",
        "optimizer.comm_strategy",
        "optimizer.ns_steps",
        "optimizer.ns_coefficients",
    ),
    *(
        "optimizer.ns_batch_memory_gb",
        "optimizer.phase0_batch_memory_gb",
        "optimizer.phase4_batch_memory_gb",
        "optimizer.qk_clip_threshold",
    ),
    *("optimizer.qk_clip_enabled", "model.architectures", "train_dataset.dataloader.config.create_compressed_eod_mask"),
    *("model.auto_register", "optimizer.learning_rate", "lr_scheduler.warmup_ratio", "lr_scheduler.warmup_steps"),
    *("train_dataset.dataloader.config.create_seq_len_vector", "train_dataset.dataloader.create_compressed_eod_mask"),
)


def names() -> frozenset[str]:
    """Dotted keys of the schema, `net.<field>` of the network, and derived names."""
    return frozenset((*defaults(), *(f"net.{field}" for field in NAMES), *_DERIVED, *_SECTIONS, *_OPEN))
