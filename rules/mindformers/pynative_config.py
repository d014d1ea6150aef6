"""Checks that the pynative configuration classes make while a file is loaded."""

from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, in_range, one_of, put, refuse, requires
from preflight.lint.expressions import Handles, any_of

a = Handles(names())
LOAD = "loading the file fails"
PYNATIVE = ConstraintSet("pynative", why=LOAD)
CONFIG = "mindformers/pynative/config/config.py"

PYNATIVE.add(
    one_of(
        "run-mode",
        a["run_mode"],
        ("train", "predict"),
        message="run_mode is {run_mode}; in pynative mode it must be train or predict",
        why="the trainer rejects every other mode",
        fixes=(put(a["run_mode"], "train"),),
    ),
    refuse(
        "predict-without-inference",
        (a["run_mode"] == "predict") & ~a["inference"].given,
        message="run_mode predict has no inference section",
        why="the trainer cannot predict without its settings",
    ),
    in_range(
        "global-batch-positive",
        a["training.global_batch_size"],
        low=1,
        message="global_batch_size is {training.global_batch_size}; it must be positive",
    ),
    in_range(
        "local-batch-positive",
        a["training.local_batch_size"],
        low=1,
        message="local_batch_size is {training.local_batch_size}; it must be positive",
    ),
    in_range(
        "skipped-steps",
        a["training.max_consecutive_skipped_steps"],
        low=0,
        message=(
            "max_consecutive_skipped_steps is {training.max_consecutive_skipped_steps}; it must be at least 0 (0 "
            "turns the guard off)"
        ),
        fixes=(put(a["training.max_consecutive_skipped_steps"], 0),),
    ),
    refuse(
        "adapter-without-base",
        (a["checkpoint.save_trainable_only"] == True) & (a["checkpoint.base_load_path"] == ""),
        message="save_trainable_only needs base_load_path, the full checkpoint below the adapter",
    ),
    requires(
        "tensor-needs-sequence",
        a["parallelism.tensor_parallel"] > 1,
        a["parallelism.sequence_parallel"],
        message="tensor_parallel {parallelism.tensor_parallel} needs sequence_parallel",
        why="tensor-parallel layers can only work on sequence shards, so " + LOAD,
        at=(a["parallelism.sequence_parallel"], a["parallelism.tensor_parallel"]),
    ),
    refuse(
        "deredundancy-too-few-experts",
        (a["parallelism.moe_token_dispatcher_type"] == "alltoall_deredundancy")
        & (a["parallelism.expert_parallel"] < a["parallelism.npu_nums_per_device"]),
        message=(
            "alltoall_deredundancy needs expert_parallel of at least {parallelism.npu_nums_per_device}, the NPUs of "
            "a server, not {parallelism.expert_parallel}"
        ),
        at=(a["parallelism.expert_parallel"], a["parallelism.moe_token_dispatcher_type"]),
    ),
    one_of(
        "recompute-mode",
        a["recompute.mode"],
        ("None", "full", "select"),
        message=(
            "recompute.mode is {recompute.mode}; it must be the string None, full or select (with this exact spelling)"
        ),
    ),
    refuse(
        "profiler-steps",
        (a["profiler.start_step"] <= 0) | (a["profiler.end_step"] <= 0),
        message=(
            "the profiler starts at step {profiler.start_step} and ends at {profiler.end_step}; both must be "
            "positive, even if the profiler is off"
        ),
    ),
    refuse(
        "profiler-order",
        (a["profiler.start_step"] > a["profiler.end_step"]) & (a["profiler.end_step"] > 0),
        message="the profiler starts at step {profiler.start_step}, after its end at step {profiler.end_step}",
    ),
    refuse(
        "lora-targets",
        a["lora_config"].is_set & (a["lora_config.target_modules"] == ""),
        message="lora_config names no target_modules",
        at=(
            a["lora_config.target_modules"],
            a["lora_config"],
        ),
    ),
    refuse(
        "lora-rank",
        any_of(a["lora_config.lora_rank"] <= 0, a["lora_config.lora_alpha"] <= 0),
        message="lora_rank {lora_config.lora_rank} and lora_alpha {lora_config.lora_alpha} must both be positive",
    ),
    refuse(
        "lora-dropout",
        any_of(a["lora_config.lora_dropout"] < 0, a["lora_config.lora_dropout"] >= 1),
        message="lora_dropout is {lora_config.lora_dropout}; it must be at least 0 and below 1",
    ),
    refuse(
        "inference-tokens",
        a["inference.max_new_tokens"] <= 0,
        message="max_new_tokens is {inference.max_new_tokens}; it must be positive",
    ),
    refuse(
        "inference-batch",
        a["inference.batch_size"] <= 0,
        message="inference.batch_size is {inference.batch_size}; it must be positive",
    ),
    refuse(
        "token-interval",
        a["monitor.moe_monitor.save_tokens_per_expert_interval"] <= 0,
        message=(
            "save_tokens_per_expert_interval is {monitor.moe_monitor.save_tokens_per_expert_interval}; it must be at "
            "least 1, or omitted to turn the feature off"
        ),
    ),
)
