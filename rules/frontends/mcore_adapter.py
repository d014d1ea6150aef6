"""Checks made by mcore_adapter and ROLL: dispatch of variable-length sequences, rollout batches across ranks, and the
devices of each role."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.frontends.mcore_adapter import ARGUMENTS, CONFIG, DERIVED
from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.source.finding import Safety, Severity

DIES = "the run fails at startup, when the arguments are created"
LATE = "the first training step fails, after the first rollout has been generated"
MCORE_ADAPTER = ConstraintSet("mcore-adapter", why=DIES)
a = Handles(megatron_names() | names("mcore-adapter") | DERIVED)
ROLL = a.role_devices.is_set
ACTOR = all_of(ROLL, a.role_name.is_in("actor_train", "student_train"))
REFERENCE = any_of(a.roll_enable_reference, a.roll_use_kl_loss, a.roll_init_kl_coef > 0)


REFERENCE_RANKS = (
    a.reference_tensor_model_parallel_size
    * a.reference_pipeline_model_parallel_size
    * a.reference_context_parallel_size
)
CRITIC_RANKS = (
    a.critic_tensor_model_parallel_size * a.critic_pipeline_model_parallel_size * a.critic_context_parallel_size
)

MCORE_ADAPTER.add(
    refuse(
        "varying-lengths-by-allgather",
        all_of(a.mca_variable_seq_lengths, a.moe_token_dispatcher_type == "allgather"),
        message=(
            "variable_seq_lengths is on, but moe_token_dispatcher_type {moe_token_dispatcher_type} supports only "
            "sequences of equal length"
        ),
        upstream=f"{ARGUMENTS}:292",
        at=(a.mca_variable_seq_lengths, a.moe_token_dispatcher_type),
        fixes=(put(a.moe_token_dispatcher_type, "alltoall", safety=Safety.SAFE),),
    ),
    refuse(
        "parameter-gather-in-roll",
        all_of(ROLL, a.overlap_param_gather),
        message="overlap_param_gather is on, but ROLL's Megatron strategy does not support it",
        why="the worker of the role fails when its strategy is created",
        upstream="roll/distributed/strategy/megatron_strategy.py:119",
        at=(a.overlap_param_gather,),
        fixes=(put(a.overlap_param_gather, False, safety=Safety.SAFE),),
    ),
    refuse(
        "parameter-gather-alone",
        all_of(~ROLL, a.overlap_param_gather, any_of(~a.use_distributed_optimizer, ~a.overlap_grad_reduce)),
        message=(
            "overlap_param_gather needs use_distributed_optimizer and overlap_grad_reduce, which are "
            "{use_distributed_optimizer} and {overlap_grad_reduce}"
        ),
        upstream=f"{ARGUMENTS}:402",
        at=(a.overlap_param_gather,),
        fixes=(put(a.overlap_param_gather, False),),
    ),
    divides(
        "rollout-over-ranks",
        a.data_parallel_size,
        a.rollout_batch_size,
        message=(
            "a rollout_batch_size of {rollout_batch_size} is not divisible by {data_parallel_size} data-parallel ranks"
        ),
        why="the config is rejected before Ray starts",
        upstream="roll/utils/config_utils.py:87",
        when=ACTOR,
        at=(a.rollout_batch_size, a.role_devices),
        after=("device-count",),
    ),
    divides(
        "samples-over-updates",
        a.samples_per_update,
        a.rl_samples_per_rank,
        message=(
            "each data-parallel rank trains on {rl_samples_per_rank} samples of a rollout, which is not a multiple of "
            "per_device_train_batch_size × gradient_accumulation_steps = {samples_per_update}"
        ),
        why=LATE,
        upstream="roll/distributed/scheduler/protocol.py:807",
        when=all_of(ACTOR, a.learns_by_rewards, ~a.role_dynamic_batches),
        at=(a.mca_gradient_accumulation_steps, a.micro_batch_size, a.rollout_batch_size),
        after=("device-count", "mcore-adapter/rollout-over-ranks"),
    ),
    divides(
        "engine-over-devices",
        a.engine_tensor_parallel_size * a.engine_pipeline_parallel_size,
        a.engine_devices,
        message=(
            "the {engine_devices} devices of actor_infer are not a multiple of its tensor "
            "{engine_tensor_parallel_size} × pipeline {engine_pipeline_parallel_size}"
        ),
        why="the config is rejected before Ray starts",
        upstream="roll/configs/worker_config.py:313",
        when=all_of(ROLL, a.engine_strategy == "vllm"),
        at=(a.engine_tensor_parallel_size, a.engine_devices),
    ),
    divides(
        "reference-over-devices",
        REFERENCE_RANKS,
        a.reference_devices,
        message=(
            "the reference's {reference_devices} devices are not a multiple of its tensor "
            "{reference_tensor_model_parallel_size} × pipeline {reference_pipeline_model_parallel_size} × context "
            "{reference_context_parallel_size}"
        ),
        why="creating the reference's process groups fails, after the engines have started",
        upstream="mcore_adapter/src/mcore_adapter/initialize.py:62",
        when=all_of(ACTOR, REFERENCE, a.reference_strategy == "megatron_infer"),
        at=(a.reference_tensor_model_parallel_size, a.reference_devices),
    ),
    divides(
        "critic-over-devices",
        CRITIC_RANKS,
        a.critic_devices,
        message=(
            "the critic's {critic_devices} devices are not a multiple of its tensor "
            "{critic_tensor_model_parallel_size} × pipeline {critic_pipeline_model_parallel_size} × context "
            "{critic_context_parallel_size}"
        ),
        why="creating the critic's process groups fails, after the engines have started",
        upstream="roll/pipeline/base_worker.py:547",
        when=all_of(ACTOR, a.roll_adv_estimator == "gae", a.critic_strategy == "megatron_train"),
        at=(a.critic_tensor_model_parallel_size, a.critic_devices),
    ),
    refuse(
        "layers-over-stages",
        all_of(
            a.published_layers % a.all_stages != 0,
            a.pipeline_model_parallel_layout.is_none,
        ),
        message=(
            "the published model has {published_layers} layers (including other parts that count as layers), which "
            "are not divisible by {all_stages} stages"
        ),
        why="the network's config is rejected if the model is the unmodified published one",
        upstream=f"{CONFIG}:397",
        severity=Severity.WARNING,
        at=(a.pipeline_model_parallel_size, a.model_path),
    ),
    refuse(
        "one-generation-a-prompt",
        all_of(ACTOR, a.num_return_sequences == 1, a.roll_adv_estimator == "grpo"),
        message=(
            "grpo compares the responses to a prompt, but num_return_sequences_in_group is 1, so there is nothing to "
            "compare"
        ),
        why="every advantage is 0, so the model learns nothing",
        upstream="roll/utils/functionals.py:655",
        severity=Severity.WARNING,
        at=(a.num_return_sequences,),
    ),
)
