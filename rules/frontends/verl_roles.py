"""Checks made by verl on roles other than the actor: the critic, rollout engines, the teacher, and the reward model."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.frontends.hydra_faults import DECAYS
from preflight.lint.constraint import ConstraintSet, divides, drop, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.source.finding import Safety, Severity

DIES = "the run fails at startup, after Ray has allocated its devices"
VERL = ConstraintSet("verl", why=DIES)
TUNING = ("max_length", "max_token_len_per_gpu", "pad_mode")
"""Arguments that only verl's fine-tuning has."""
a = Handles(megatron_names() | names("verl") | frozenset(TUNING))
TRAINER = a.entry == "verl.trainer.main_ppo"
SFT = a.entry == "verl.trainer.sft_trainer"
CRITIC = any_of(a.critic_enable.is_in(True), all_of(a.critic_enable.is_none, a.adv_estimator == "gae"))
CRITIC_RANKS = (
    a.critic_tensor_model_parallel_size * a.critic_pipeline_model_parallel_size * a.critic_context_parallel_size
)
REPLICA = a.rollout_tensor_model_parallel_size * a.rollout_data_parallel_size
TEACHER = a.teacher_tensor_model_parallel_size * a.teacher_data_parallel_size
POOL = a.distillation_nnodes * a.distillation_n_gpus_per_node
DISTILLS = all_of(TRAINER, a.distillation_enabled)
REFERENCE = all_of(
    any_of(a.use_kl_loss, a.use_kl_in_reward), ~(a.lora_rank > 0), ~(a.adapter_rank > 0), a.lora_adapter_path.is_none
)
"""The reference model is the actor itself if the run trains an adapter (verl/trainer/ppo/v1/trainer_base.py:744)."""
CONFIG = "verl/workers/config"
ADAPTERS = 1e-2
"""100 times the usual learning rate of adapters, 1e-4."""

VERL.add(
    refuse(
        "no-critic-micro-batch",
        all_of(
            TRAINER,
            CRITIC,
            ~a.critic_use_dynamic_bsz,
            a.critic_ppo_micro_batch_size.is_none,
            a.critic_ppo_micro_batch_size_per_gpu.is_none,
        ),
        message="the critic has neither ppo_micro_batch_size_per_gpu nor use_dynamic_bsz",
        upstream=f"{CONFIG}/critic.py:110",
        at=(a.critic_use_dynamic_bsz, a.adv_estimator, a.critic_ppo_mini_batch_size, a.ppo_mini_batch_size),
        fixes=(put(a.critic_ppo_micro_batch_size_per_gpu, 1, safety=Safety.SAFE),),
    ),
    refuse(
        "two-critic-micro-batches",
        all_of(
            TRAINER,
            CRITIC,
            ~a.critic_use_dynamic_bsz,
            a.critic_ppo_micro_batch_size.is_set,
            a.critic_ppo_micro_batch_size_per_gpu.is_set,
        ),
        message=(
            "only one of critic.ppo_micro_batch_size and critic.ppo_micro_batch_size_per_gpu may be given, but both are"
        ),
        upstream=f"{CONFIG}/critic.py:110",
        at=(a.critic_ppo_micro_batch_size,),
    ),
    refuse(
        "critic-mini-batch-above-train-batch",
        all_of(TRAINER, CRITIC, ~a.critic_use_dynamic_bsz, a.train_batch_size < a.critic_ppo_mini_batch_size),
        message=(
            "the critic's mini-batch of {critic_ppo_mini_batch_size} prompts is larger than the batch of "
            "{train_batch_size}"
        ),
        upstream=f"{CONFIG}/critic.py:127",
        at=(a.critic_ppo_mini_batch_size, a.train_batch_size),
        after=("verl/mini-batch-above-train-batch",),
        fixes=(put(a.critic_ppo_mini_batch_size, a.train_batch_size),),
    ),
    divides(
        "critic-over-devices",
        CRITIC_RANKS,
        a.world_size,
        message=(
            "{world_size} devices are not a multiple of the critic's tensor {critic_tensor_model_parallel_size} × "
            "pipeline {critic_pipeline_model_parallel_size} × context {critic_context_parallel_size}"
        ),
        upstream="verl/workers/engine/megatron/transformer_impl.py:272",
        when=all_of(TRAINER, CRITIC),
        at=(
            a.critic_tensor_model_parallel_size,
            a.critic_pipeline_model_parallel_size,
            a.critic_context_parallel_size,
            a.n_gpus_per_node,
        ),
        after=("device-count",),
    ),
    refuse(
        "critic-without-bridge",
        all_of(TRAINER, CRITIC, ~a.critic_use_mbridge),
        message="the critic's use_mbridge is False, but there is no other way to convert weights",
        upstream="verl/workers/engine/megatron/transformer_impl.py:191",
        fixes=(put(a.critic_use_mbridge, True, offered=True),),  # as for no-bridge
    ),
    refuse(
        "reference-without-bridge",
        all_of(TRAINER, REFERENCE, a.engine_use_mbridge, ~a.ref_use_mbridge),
        message="use_mbridge of the reference model is False, but there is no other way to convert weights",
        upstream="verl/workers/engine/megatron/transformer_impl.py:191",
        fixes=(put(a.ref_use_mbridge, True, offered=True),),  # as for no-bridge
    ),
    refuse(
        "rollout-above-devices",
        all_of(TRAINER, a.hybrid_engine, a.world_size.is_set, a.world_size < REPLICA),
        message=(
            "a rollout engine needs tensor {rollout_tensor_model_parallel_size} × data {rollout_data_parallel_size} "
            "devices, but the run has {world_size}, so no engine is started"
        ),
        upstream="verl/workers/rollout/llm_server.py:554",
        at=(a.rollout_tensor_model_parallel_size, a.rollout_data_parallel_size),
        after=("verl/rollout-over-nodes",),
    ),
    refuse(
        "rollout-pipeline",
        all_of(TRAINER, a.rollout_name.is_in("vllm", "sglang"), a.rollout_pipeline_model_parallel_size > 1),
        message="the engine {rollout_name} supports only 1 pipeline stage, not {rollout_pipeline_model_parallel_size}",
        upstream=f"{CONFIG}/rollout.py:319",
        at=(a.rollout_pipeline_model_parallel_size,),
        fixes=(put(a.rollout_pipeline_model_parallel_size, 1, safety=Safety.SAFE),),
    ),
    refuse(
        "sampling-at-temperature-zero",
        all_of(TRAINER, a.rollout_val_do_sample, a.rollout_temperature <= 0),
        message=(
            "the validation samples (do_sample) at temperature {rollout_temperature}, but the temperature must be "
            "above 0"
        ),
        upstream="verl/utils/config.py:186",
        at=(a.rollout_temperature, a.rollout_val_do_sample),
        fixes=(drop(a.rollout_temperature),),
    ),
    refuse(
        "memory-share-of-engine",
        all_of(
            TRAINER,
            a.rollout_name == "vllm",
            any_of(a.rollout_gpu_memory_utilization > 1, a.rollout_gpu_memory_utilization <= 0),
        ),
        message="rollout.gpu_memory_utilization is {rollout_gpu_memory_utilization}; it must be from 0 to 1",
        why="the rollout engine fails to start, after Ray has allocated its devices",
        upstream="vllm/config/cache.py",
        at=(a.rollout_gpu_memory_utilization,),
    ),
    refuse(
        "virtual-stages-without-pipeline",
        all_of(a.num_virtual_stages_per_pipeline_rank > 1, a.pipeline_model_parallel_size == 1),
        message=(
            "virtual_pipeline_model_parallel_size is {num_virtual_stages_per_pipeline_rank}, but there is only one pipeline stage"
        ),
        upstream="megatron/core/parallel_state.py:746",
        at=(a.num_virtual_stages_per_pipeline_rank, a.pipeline_model_parallel_size),
        fixes=(put(a.num_virtual_stages_per_pipeline_rank, None, safety=Safety.SAFE),),
    ),
    refuse(
        "one-sample-a-group",
        all_of(
            TRAINER,
            ~a.distillation_enabled,  # the teacher's loss does not compare samples
            a.rollout_n == 1,
            a.adv_estimator.is_in("grpo", "grpo_vectorized", "rloo", "rloo_vectorized", "gpg", "opo", "grpo_passk"),
        ),
        message="{adv_estimator} compares the samples of a prompt, but rollout.n is 1, so there is nothing to compare",
        why="no advantage can be computed from other samples of the prompt, so the model learns next to nothing",
        upstream="verl/trainer/ppo/core_algos.py:268",
        severity=Severity.WARNING,
        at=(a.rollout_n, a.adv_estimator),
    ),
    refuse(
        "never-saved",
        all_of(TRAINER, a.save_freq == 0),
        message="trainer.save_freq is 0, so no checkpoint is written; if this is intended, use -1",
        why="the run ends without saving anything",
        upstream="verl/trainer/ppo/ray_trainer.py:1679",
        severity=Severity.WARNING,
        at=(a.save_freq,),
    ),
    refuse(
        "tokens-below-sequence",
        all_of(TRAINER, a.use_dynamic_bsz, a.ppo_max_token_len_per_gpu * a.context_parallel_size < a.seq_length),
        message=(
            "a micro-batch holds {ppo_max_token_len_per_gpu} × {context_parallel_size} tokens "
            "(ppo_max_token_len_per_gpu × context-parallel size), but a prompt with its response can have up to "
            "{seq_length}"
        ),
        why="training fails at the first sequence that is longer",
        upstream="verl/utils/seqlen_balancing.py:384",
        severity=Severity.WARNING,
        at=(a.ppo_max_token_len_per_gpu,),
    ),
    refuse(
        "log-probability-tokens-below-sequence",
        all_of(
            TRAINER,
            a.rollout_log_prob_use_dynamic_bsz,
            a.rollout_log_prob_max_token_len.given,
            a.rollout_log_prob_max_token_len * a.context_parallel_size < a.seq_length,
        ),
        message=(
            "a micro-batch for log-probabilities holds {rollout_log_prob_max_token_len} × {context_parallel_size} tokens "
            "(log_prob_max_token_len_per_gpu × context-parallel size), but a prompt with its response can have up to "
            "{seq_length}"
        ),
        why="the run fails at the first sequence that is longer",
        upstream="verl/utils/seqlen_balancing.py",
        severity=Severity.WARNING,
        at=(a.rollout_log_prob_max_token_len,),
    ),
    refuse(
        "tokens-below-sample",
        all_of(SFT, a.use_dynamic_bsz, a.max_token_len_per_gpu * a.context_parallel_size < a.max_length),
        message=(
            "a micro-batch holds {max_token_len_per_gpu} × {context_parallel_size} tokens (max_token_len_per_gpu × "
            "context-parallel size), but a sample can have up to {max_length}"
        ),
        why="training fails at the first sample that is longer",
        upstream="verl/utils/seqlen_balancing.py",
        severity=Severity.WARNING,
        at=(a.max_token_len_per_gpu,),
    ),
    refuse(
        "unknown-padding",
        all_of(SFT, a.pad_mode.given, ~a.pad_mode.is_in("no_padding", "right", "left_right")),
        message="data.pad_mode must be no_padding or right, not {pad_mode}",
        why="collating the first batch fails",
        upstream="verl/utils/dataset/dataset_utils.py:61",
        at=(a.pad_mode,),
    ),
    refuse(
        "unknown-decay-of-tuning",
        all_of(SFT, a.lr_decay_style.given, ~a.lr_decay_style.is_in(*DECAYS)),
        message="optim.lr_decay_style {lr_decay_style} is not one of {styles}",
        why="Megatron's schedule rejects it at the first step",
        shows={"styles": ", ".join(DECAYS)},
        upstream="megatron/core/optimizer_param_scheduler.py",
        at=(a.lr_decay_style,),
    ),
    refuse(
        "adapter-rate-too-high",
        all_of(TRAINER, a.lora_rank > 0, a.optimizer == "adam", a.lr >= ADAPTERS),
        message="the learning rate of the adapters is {lr}, but published runs use about 1e-6 to 1e-4; the exponent may be wrong",
        why="the policy leaves the model that it started from within a few steps",
        upstream="verl/workers/config/optimizer.py",
        severity=Severity.WARNING,
        at=(a.lr,),
    ),
    refuse(
        "overlong-buffer-above-response",
        all_of(
            TRAINER,
            a.reward_manager_name == "dapo",
            a.overlong_enable.is_in(True),
            a.overlong_len > a.max_resp_len,
        ),
        message="overlong_buffer_cfg.len {overlong_len} is above max_resp_len {max_resp_len}, the length of a response",
        why="creating the reward manager fails after the models are loaded",
        upstream="verl/experimental/reward_loop/reward_manager/dapo.py:43",
        at=(a.overlong_len, a.max_resp_len),
    ),
    refuse(
        "kl-twice",
        all_of(TRAINER, a.use_kl_in_reward, a.use_kl_loss),
        message="use_kl_in_reward and use_kl_loss are both on, so the distance to the reference counts twice",
        why="the reference constrains the policy more than either coefficient specifies",
        upstream="verl/utils/config.py:170",
        severity=Severity.WARNING,
        at=(a.use_kl_in_reward, a.use_kl_loss),
    ),
    refuse(
        "no-teacher-topk",
        all_of(DISTILLS, a.distillation_loss_mode == "forward_kl_topk", a.distillation_topk.is_none),
        message="the loss {distillation_loss_mode} needs distillation_loss.topk, which is null",
        upstream=f"{CONFIG}/distillation.py:192",
        at=(a.distillation_topk, a.distillation_loss_mode),
        fixes=(drop(a.distillation_topk),),
    ),
    refuse(
        "teacher-length",
        all_of(
            DISTILLS,
            a.teacher_max_model_len.is_set,
            a.teacher_max_model_len < a.max_prompt_length + a.max_response_length + 1,
            a.teacher_response_length == a.max_response_length,
            a.teacher_prompt_length == a.max_prompt_length,
        ),
        message=(
            "the teacher reads at most {teacher_max_model_len} tokens, but prompt {max_prompt_length} + response "
            "{max_response_length} + 1 = {needed}"
        ),
        upstream=f"{CONFIG}/distillation.py:179",
        shows={"needed": a.max_prompt_length + a.max_response_length + 1},
        at=(a.teacher_max_model_len,),
        fixes=(put(a.teacher_max_model_len, a.max_prompt_length + a.max_response_length + 1, safety=Safety.SAFE),),
    ),
    refuse(
        "no-teacher-devices",
        all_of(DISTILLS, any_of(a.distillation_nnodes <= 0, a.distillation_n_gpus_per_node <= 0)),
        message=(
            "the teacher has a pool of {distillation_nnodes} nodes × {distillation_n_gpus_per_node} devices, but both "
            "numbers must be above 0"
        ),
        upstream="verl/trainer/ppo/v1/trainer_base.py:779",
        at=(a.distillation_nnodes, a.distillation_n_gpus_per_node, a.distillation_enabled),
        fixes=(put(a.distillation_nnodes, 1),),
    ),
    divides(
        "teacher-over-pool",
        TEACHER,
        POOL,
        message=(
            "the teacher's engine needs tensor {teacher_tensor_model_parallel_size} × data "
            "{teacher_data_parallel_size} devices, which do not divide its pool of {distillation_nnodes} × "
            "{distillation_n_gpus_per_node}"
        ),
        upstream=f"{CONFIG}/distillation.py:292",
        when=all_of(DISTILLS, a.teacher_pipeline_model_parallel_size.is_none, a.teacher_model_path.is_set),
        at=(a.teacher_tensor_model_parallel_size, a.distillation_n_gpus_per_node, a.distillation_nnodes),
        after=("verl/no-teacher-devices",),
    ),
    refuse(
        "no-reward-devices",
        all_of(TRAINER, a.reward_pool_enable, any_of(a.reward_nnodes <= 0, a.reward_n_gpus_per_node <= 0)),
        message=(
            "the reward model has a pool of {reward_nnodes} nodes × {reward_n_gpus_per_node} devices, but both "
            "numbers must be above 0"
        ),
        upstream="verl/trainer/ppo/v1/trainer_base.py:764",
        at=(a.reward_nnodes, a.reward_n_gpus_per_node, a.reward_pool_enable),
        fixes=(put(a.reward_nnodes, 1),),
    ),
)

VERL.add(
    refuse(
        "no-checkpoint-to-resume",
        all_of(TRAINER, a.resume_mode == "resume_path", a.resume_from_path.is_none),
        message="trainer.resume_mode is resume_path, but trainer.resume_from_path is not given",
        upstream="verl/trainer/ppo/ray_trainer.py:1073",
        at=(a.resume_mode,),
    ),
    refuse(
        "groups-filtered-by-nothing",
        all_of(TRAINER, a.filter_groups_enabled, a.filter_groups_metric.is_none),
        message="algorithm.filter_groups is enabled without a metric",
        upstream="verl/trainer/ppo/v1/trainer_base.py:199",
        at=(a.filter_groups_enabled,),
    ),
)
