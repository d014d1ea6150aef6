"""Checks made by SkyRL: how prompts divide across ranks and micro-batches, and what the Megatron strategy supports."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.frontends.skyrl import DERIVED
from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import Handles, all_of
from preflight.source.finding import Safety, Severity

DIES = "the run fails when its config is validated, after Ray has started"
SKYRL = ConstraintSet("skyrl", why=DIES)
a = Handles(megatron_names() | names("skyrl") | DERIVED)
UTILS = "skyrl/train/utils/utils.py"
BATCH, MINI = a.skyrl_trainer_train_batch_size, a.skyrl_trainer_policy_mini_batch_size
SAMPLES = a.skyrl_generator_n_samples_per_prompt
BACKEND = a.skyrl_generator_inference_engine_backend
SYNC = a.skyrl_generator_inference_engine_weight_sync_backend

SKYRL.add(
    divides(
        "mini-batches-of-batch",
        MINI,
        BATCH,
        message=(
            "a train_batch_size of {skyrl_trainer_train_batch_size} is not a multiple of policy_mini_batch_size "
            "{skyrl_trainer_policy_mini_batch_size}"
        ),
        upstream=f"{UTILS}:96",
        at=(MINI, BATCH),
    ),
    divides(
        "micro-batches-of-mini-batch",
        a.micro_batch_size,
        a.skyrl_mini_batch_per_rank,
        message=(
            "each rank has {skyrl_mini_batch_per_rank} samples of a mini-batch, which are not divisible by micro_train_batch_size_per_gpu {micro_batch_size}"
        ),
        upstream=f"{UTILS}:112",
        at=(a.micro_batch_size, MINI),
        after=("device-count", "batch-not-divisible"),
    ),
    refuse(
        "engine-beside-megatron",
        BACKEND != "vllm",
        message="generator.inference_engine.backend is {skyrl_generator_inference_engine_backend}; Megatron needs vllm",
        upstream=f"{UTILS}:198",
        at=(BACKEND,),
        fixes=(put(BACKEND, "vllm"),),
    ),
    refuse(
        "sync-beside-megatron",
        SYNC != "nccl",
        message=(
            "weight_sync_backend is {skyrl_generator_inference_engine_weight_sync_backend}; with Megatron, it must be "
            "nccl"
        ),
        upstream=f"{UTILS}:197",
        at=(SYNC,),
        fixes=(put(SYNC, "nccl", safety=Safety.SAFE),),
    ),
    refuse(
        "critic-beside-megatron",
        a.skyrl_trainer_critic_model_path.is_set,
        message="trainer.critic.model.path is given, but Megatron's strategy does not train a critic",
        upstream=f"{UTILS}:199",
        at=(a.skyrl_trainer_critic_model_path,),
    ),
    refuse(
        "context-with-padding",
        all_of(a.context_parallel_size > 1, ~a.skyrl_trainer_remove_microbatch_padding),
        message="a context-parallel size of {context_parallel_size} needs remove_microbatch_padding, which is off",
        upstream=f"{UTILS}:212",
        at=(a.skyrl_trainer_remove_microbatch_padding, a.context_parallel_size),
        fixes=(put(a.skyrl_trainer_remove_microbatch_padding, True),),
    ),
    refuse(
        "one-sample-a-group",
        all_of(SAMPLES == 1, a.skyrl_trainer_algorithm_advantage_estimator == "grpo"),
        message="grpo compares the samples of a prompt, but n_samples_per_prompt is 1, so there is nothing to compare",
        why="a group with a single sample uses its reward as the advantage, without a baseline",
        upstream="skyrl/backends/skyrl_train/utils/ppo_utils.py:1321",
        severity=Severity.WARNING,
        at=(SAMPLES,),
    ),
)
