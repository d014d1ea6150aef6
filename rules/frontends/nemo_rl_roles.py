"""Checks made by NeMo RL on its generation engines, teacher, value model and validation."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.frontends.nemo_rl import DERIVED
from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.source.finding import Safety, Severity

DIES = "the run fails when its engines start, after Ray has allocated its devices"
NEMO_RL = ConstraintSet("nemo-rl", why=DIES)
a = Handles(megatron_names() | names("nemo-rl") | DERIVED)
VLLM = "nemo_rl/models/generation/vllm/vllm_generation.py"
ENGINE = a.vllm_tensor_parallel_size * a.vllm_pipeline_parallel_size
TEACHER = (
    a.teacher_tensor_model_parallel_size * a.teacher_pipeline_model_parallel_size * a.teacher_context_parallel_size
)
VALUE = a.value_tensor_model_parallel_size * a.value_pipeline_model_parallel_size * a.value_context_parallel_size

VALIDATES = any_of(a.val_period.is_none, a.val_period > 0)
NEMO_RL.add(
    divides(
        "engine-over-devices",
        ENGINE,
        a.world_size,
        message=(
            "{world_size} devices are not a multiple of vLLM's tensor {vllm_tensor_parallel_size} × pipeline "
            "{vllm_pipeline_parallel_size}"
        ),
        upstream=f"{VLLM}:110",
        when=all_of(a.generation_backend == "vllm", a.generation_colocated),
        at=(a.vllm_tensor_parallel_size, a.vllm_pipeline_parallel_size, a.num_nodes),
    ),
    refuse(
        "engine-stages-without-async",
        all_of(a.generation_backend == "vllm", a.vllm_pipeline_parallel_size > 1, ~a.vllm_async_engine),
        message="vLLM has {vllm_pipeline_parallel_size} pipeline stages, which need async_engine: true",
        upstream=f"{VLLM}:118",
        at=(a.vllm_pipeline_parallel_size, a.vllm_async_engine),
        fixes=(put(a.vllm_async_engine, True, safety=Safety.SAFE),),
    ),
    divides(
        "engine-experts",
        a.vllm_tensor_parallel_size,
        a.vllm_expert_parallel_size,
        message=(
            "vLLM's expert-parallel size {vllm_expert_parallel_size} is not a multiple of its tensor-parallel size "
            "{vllm_tensor_parallel_size}"
        ),
        upstream=f"{VLLM}:124",
        when=all_of(a.generation_backend == "vllm", a.vllm_expert_parallel_size > 1),
        at=(a.vllm_expert_parallel_size, a.vllm_tensor_parallel_size),
    ),
    divides(
        "teacher-over-devices",
        TEACHER,
        a.world_size,
        message=(
            "{world_size} devices are not a multiple of the teacher's tensor {teacher_tensor_model_parallel_size} × "
            "pipeline {teacher_pipeline_model_parallel_size} × context {teacher_context_parallel_size} = {teacher}"
        ),
        upstream="nemo_rl/models/policy/lm_policy.py:197",
        when=a.teacher_megatron_enabled,
        shows={"teacher": TEACHER},
        at=(
            a.teacher_tensor_model_parallel_size,
            a.teacher_pipeline_model_parallel_size,
            a.teacher_context_parallel_size,
        ),
    ),
    refuse(
        "teacher-with-two-backends",
        all_of(a.teacher_megatron_enabled, a.teacher_dtensor_enabled),
        message="only one of teacher.megatron_cfg and teacher.dtensor_cfg may be enabled, but both are",
        upstream="nemo_rl/models/policy/lm_policy.py:94",
        at=(a.teacher_megatron_enabled, a.teacher_dtensor_enabled),
        fixes=(put(a.teacher_dtensor_enabled, False),),
    ),
    divides(
        "value-over-devices",
        VALUE,
        a.world_size,
        message=(
            "{world_size} devices are not a multiple of the value model's tensor {value_tensor_model_parallel_size} × "
            "pipeline {value_pipeline_model_parallel_size} × context {value_context_parallel_size} = {value}"
        ),
        upstream="nemo_rl/models/value/lm_value.py:132",
        when=a.value_megatron_enabled,
        shows={"value": VALUE},
        at=(a.value_tensor_model_parallel_size, a.value_pipeline_model_parallel_size, a.value_context_parallel_size),
    ),
    divides(
        "validation-over-ranks",
        a.data_parallel_size,
        a.val_global_batch_size,
        message=(
            "a validation batch of {val_global_batch_size} is not divisible by {data_parallel_size} data-parallel ranks"
        ),
        upstream="nemo_rl/distributed/batched_data_dict.py:399",
        when=all_of(a.val_global_batch_size.is_set, a.num_nodes.is_set, VALIDATES),
        at=(a.val_global_batch_size,),
        after=("device-count", "nemo-rl/batch-over-ranks"),
    ),
    divides(
        "validation-over-micro-batches",
        a.data_parallel_size * a.val_micro_batch_size,
        a.val_global_batch_size,
        message=(
            "a validation batch of {val_global_batch_size} cannot be divided into micro-batches of "
            "{val_micro_batch_size} on {data_parallel_size} data-parallel ranks"
        ),
        why="the first validation fails, because only the last batch of the data is padded",
        upstream="nemo_rl/distributed/batched_data_dict.py:831",
        when=all_of(
            a.val_global_batch_size.is_set,
            a.val_micro_batch_size.is_set,
            a.num_nodes.is_set,
            VALIDATES,
            ~a.dynamic_batching,
            ~a.sequence_packing_enabled,
        ),
        at=(a.val_micro_batch_size, a.val_global_batch_size),
        after=("device-count", "nemo-rl/batch-over-ranks", "nemo-rl/validation-over-ranks"),
    ),
    refuse(
        "save-period-zero",
        all_of(a.checkpointing_enabled, a.save_period == 0),
        message="checkpointing.save_period must not be 0, because the step number is divided by it",
        why="the first step fails with ZeroDivisionError, unless it is also the last step",
        upstream="nemo_rl/algorithms/grpo.py:2875",
        at=(a.save_period,),
    ),
    refuse(
        "one-generation-a-prompt",
        all_of(
            a.num_generations_per_prompt == 1,
            a.num_prompts_per_step > 1,  # a step of a single sample is a trial of the program, which learns nothing
            a.nemo_adv_estimator.is_in("grpo", "gdpo"),
        ),
        message=(
            "{nemo_adv_estimator} compares the generations of a prompt, but there is only 1, so there is nothing to "
            "compare"
        ),
        why="every advantage is 0, so the model learns nothing",
        upstream="nemo_rl/algorithms/advantage_estimator.py:54",
        severity=Severity.WARNING,
        at=(a.num_generations_per_prompt,),
    ),
)

LOSS = "nemo_rl/algorithms/loss/loss_functions.py"
GRPO = "nemo_rl/algorithms/grpo.py"
SAMPLES = a.num_prompts_per_step * a.num_generations_per_prompt

NEMO_RL.add(
    refuse(
        "checkpoint-metric",
        all_of(
            a.checkpointing_enabled,
            a.checkpoint_metric.is_set,
            ~a.checkpoint_metric.starts_with("train:"),
            ~a.checkpoint_metric.starts_with("val:"),
        ),
        message="checkpointing.metric_name is {checkpoint_metric}; it must start with val: or train:",
        why="the run fails when it saves its first checkpoint, after all the steps before it",
        upstream=f"{GRPO}:2901",
        at=(a.checkpoint_metric,),
    ),
    refuse(
        "asynchronous-and-colocated",
        all_of(a.async_grpo_enabled, a.generation_colocated),
        message="asynchronous GRPO generates and trains on different devices, but generation.colocated is enabled",
        why="the run fails after the models are loaded",
        upstream=f"{GRPO}:3421",
        at=(a.async_grpo_enabled, a.generation_colocated),
        fixes=(put(a.async_grpo_enabled, False),),
    ),
    refuse(
        "asynchronous-without-async-engine",
        all_of(a.async_grpo_enabled, a.generation_backend == "vllm", ~a.vllm_async_engine),
        message="asynchronous GRPO needs generation.vllm_cfg.async_engine",
        why="the run fails after the models are loaded",
        upstream=f"{GRPO}:3364",
        at=(a.async_grpo_enabled, a.vllm_async_engine),
        fixes=(put(a.vllm_async_engine, True),),
    ),
    refuse(
        "asynchronous-without-correction",
        all_of(a.async_grpo_enabled, ~a.use_importance_sampling_correction),
        message="asynchronous GRPO needs loss_fn.use_importance_sampling_correction",
        why="the run fails after the models are loaded",
        upstream=f"{GRPO}:3371",
        at=(a.async_grpo_enabled, a.use_importance_sampling_correction),
        fixes=(put(a.use_importance_sampling_correction, True),),
    ),
    refuse(
        "on-policy-batch",
        all_of(a.force_on_policy_ratio, a.global_batch_size != SAMPLES),
        message=(
            "loss_fn.force_on_policy_ratio needs one update per step, but {num_prompts_per_step} prompts × "
            "{num_generations_per_prompt} generations do not equal the batch size {global_batch_size}"
        ),
        upstream=f"{GRPO}:430",
        at=(a.force_on_policy_ratio, a.global_batch_size, a.num_prompts_per_step),
    ),
    divides(
        "rollouts-over-batch",
        a.global_batch_size,
        SAMPLES,
        message=(
            "{num_prompts_per_step} prompts × {num_generations_per_prompt} generations are not a multiple of "
            "policy.train_global_batch_size {global_batch_size}"
        ),
        why="an update needs whole batches, so the first update fails after the first rollout",
        upstream="nemo_rl/distributed/batched_data_dict.py:395",
        at=(a.num_prompts_per_step, a.num_generations_per_prompt, a.global_batch_size),
        after=("nemo-rl/on-policy-batch",),
    ),
    divides(
        "distilled-over-batch",
        a.global_batch_size,
        a.distillation_prompts * a.distillation_generations,
        message=(
            "{distillation_prompts} prompts × {distillation_generations} generations are not a multiple of "
            "policy.train_global_batch_size {global_batch_size}"
        ),
        why="an update needs whole batches, so the first update fails after the first rollout",
        upstream="nemo_rl/distributed/batched_data_dict.py:395",
        at=(a.distillation_prompts, a.distillation_generations, a.global_batch_size),
    ),
    refuse(
        "dual-clip-below-one",
        all_of(a.ratio_clip_c.is_set, a.ratio_clip_c <= 1),
        message="loss_fn.ratio_clip_c is {ratio_clip_c}; it must be greater than 1",
        why="the first step fails, after the first rollout",
        upstream=f"{LOSS}:491",
        at=(a.ratio_clip_c,),
    ),
    refuse(
        "sequence-ratios-of-token-loss",
        all_of(a.sequence_level_importance_ratios, a.token_level_loss),
        message="sequence_level_importance_ratios needs token_level_loss: false",
        upstream=f"{LOSS}:250",
        at=(a.sequence_level_importance_ratios, a.token_level_loss),
        fixes=(put(a.token_level_loss, False),),
    ),
    refuse(
        "more-batches-without-sampling",
        all_of(a.batch_multiplier.is_set, a.batch_multiplier != 1, ~a.use_dynamic_sampling),
        message="grpo.batch_multiplier {batch_multiplier} needs grpo.use_dynamic_sampling",
        upstream=f"{GRPO}:343",
        at=(a.batch_multiplier, a.use_dynamic_sampling),
        fixes=(put(a.batch_multiplier, 1),),
    ),
)
