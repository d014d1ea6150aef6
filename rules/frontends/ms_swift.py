"""Checks made by ms-swift: generation batches, checkpoints, pipeline stages, and required options."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.frontends.ms_swift import DERIVED
from preflight.lint.constraint import ConstraintSet, conflicts, divides, drop, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.source.finding import Kind, Safety, Severity

REFUSED = "the run fails at startup"
MS_SWIFT = ConstraintSet("ms-swift", why=REFUSED)
a = Handles(megatron_names() | names("ms-swift") | DERIVED)
ARGUMENTS = "swift/megatron/arguments/megatron_args.py"
LOSS_SCALES = (
    *("default", "last_round", "all", "base", "ignore_empty_think", "ignore_think_prefix", "react", "hermes", "qwen"),
    *("agentflan", "alpha_umi", "last_round_with_ignore_empty_think", "-"),
)
"""Those of all described releases."""
GENERATES = a.rlhf_type.is_in("grpo", "gkd")
PROMPTS = a.generation_batch_size // a.num_generations
FIRST, LAST = a.decoder_first_pipeline_num_layers, a.decoder_last_pipeline_num_layers

MS_SWIFT.add(
    refuse(
        "generation-batch-of-steps",
        all_of(
            GENERATES,
            a.generation_batch_size.given,
            a.steps_per_generation.given,
            a.generation_batch_size != a.global_batch_size * a.steps_per_generation,
        ),
        message=(
            "--generation_batch_size is {generation_batch_size}, but it must equal the global batch size "
            "{global_batch_size} × {steps_per_generation} steps"
        ),
        upstream=f"{ARGUMENTS}:277",
        at=(a.generation_batch_size, a.steps_per_generation),
        fixes=(drop(a.generation_batch_size), drop(a.steps_per_generation)),
    ),
    divides(
        "generation-batch-in-steps",
        a.global_batch_size,
        a.generation_batch_size,
        when=all_of(GENERATES, a.generation_batch_size.given, ~a.steps_per_generation.given),
        message="--generation_batch_size {generation_batch_size} is not a multiple of the batch {global_batch_size}",
        upstream=f"{ARGUMENTS}:282",
        at=(a.generation_batch_size, a.global_batch_size),
    ),
    divides(
        "generations-of-a-prompt",
        a.num_generations,
        a.generation_batch_size,
        when=all_of(GENERATES, a.num_generations > 1),
        message=(
            "a generation batch of {generation_batch_size} is not divisible by {num_generations} generations per prompt"
        ),
        upstream=f"{ARGUMENTS}:292",
        at=(a.num_generations, a.generation_batch_size, a.global_batch_size),
        after=("ms-swift/generation-batch-of-steps", "ms-swift/generation-batch-in-steps"),
    ),
    divides(
        "engine-over-devices",
        a.vllm_tensor_parallel_size,
        a.world_size,
        when=all_of(GENERATES, a.use_vllm, a.vllm_mode == "colocate"),
        message="{world_size} devices are not a multiple of --vllm_tensor_parallel_size {vllm_tensor_parallel_size}",
        why="the inference engine does not start after the model is loaded",
        upstream="swift/megatron/trainers/rollout_mixin.py:405",
        at=(a.vllm_tensor_parallel_size,),
        after=("device-count",),
    ),
    divides(
        "prompts-over-ranks",
        a.data_parallel_size,
        PROMPTS,
        when=GENERATES,
        message=(
            "{prompts} prompts of a generation batch ({generation_batch_size} samples / {num_generations} generations)"
            " are not divisible by {data_parallel_size} data-parallel ranks"
        ),
        upstream=f"{ARGUMENTS}:312",
        shows={"prompts": PROMPTS},
        at=(a.generation_batch_size, a.global_batch_size, a.num_generations),
        after=("ms-swift/generations-of-a-prompt",),
    ),
    divides(
        "prompts-in-micro-batches",
        a.micro_batch_size,
        PROMPTS // a.data_parallel_size,
        when=all_of(GENERATES, PROMPTS % a.data_parallel_size == 0),
        message=(
            "{prompts} prompts per data-parallel rank, ({generation_batch_size} samples / {num_generations} "
            "generations) / {data_parallel_size} ranks, are not a multiple of the micro-batch size {micro_batch_size}"
        ),
        why="this check counts prompts, not samples, and " + REFUSED,
        upstream=f"{ARGUMENTS}:322",
        shows={"prompts": PROMPTS // a.data_parallel_size},
        at=(a.micro_batch_size, a.generation_batch_size, a.global_batch_size),
        after=("ms-swift/generations-of-a-prompt",),
    ),
    refuse(
        "method-of-selective-recomputation",
        all_of(a.recompute_granularity == "selective", a.recompute_method.is_set),
        message="--recompute_method {recompute_method} has no meaning with selective recomputation",
        upstream=f"{ARGUMENTS}:801",
        at=(a.recompute_method, a.recompute_granularity),
        fixes=(drop(a.recompute_method, safety=Safety.SAFE), put(a.recompute_granularity, "full")),
    ),
    conflicts(
        "groups-without-padding",
        a.group_by_length,
        a.padding_free,
        message="--group_by_length cannot be combined with padding_free, which is on by default",
        upstream=f"{ARGUMENTS}:804",
        fixes=(drop(a.group_by_length),),
    ),
    refuse(
        "stage-layers-without-pipeline",
        all_of(a.pipeline_model_parallel_size == 1, any_of(FIRST.is_set, LAST.is_set)),
        message="the number of layers of the first or the last stage is given, but there is only one stage",
        upstream=f"{ARGUMENTS}:835",
        at=(FIRST, LAST),
        after=("megatron/uneven-pipeline",),
    ),
    refuse(
        "overlap-without-sequence-parallel",
        all_of(a.tp_comm_overlap, ~a.sequence_parallel),
        message="--tp_comm_overlap needs sequence parallelism, which needs tensor parallelism",
        upstream=f"{ARGUMENTS}:898",
        at=(a.tp_comm_overlap,),
        fixes=(drop(a.tp_comm_overlap),),
    ),
    refuse(
        "too-few-checkpoints",
        a.save_total_limit < 2,
        message="--save_total_limit is {save_total_limit}; it must be at least 2",
        upstream=f"{ARGUMENTS}:862",
        fixes=(put(a.save_total_limit, 2, safety=Safety.SAFE),),
        after=("ms-swift/asynchronous-checkpoints",),
    ),
    refuse(
        "asynchronous-checkpoints",
        all_of(a.async_save, a.save_total_limit.is_set),
        message="--async_save cannot be combined with --save_total_limit",
        upstream=f"{ARGUMENTS}:860",
        fixes=(drop(a.async_save), drop(a.save_total_limit)),
    ),
    refuse(
        "muon-overlaps",
        all_of(a.optimizer == "muon", any_of(a.overlap_grad_reduce, a.overlap_param_gather)),
        message="--optimizer muon does not work with --overlap_grad_reduce or --overlap_param_gather",
        upstream=f"{ARGUMENTS}:975",
        at=(a.overlap_grad_reduce, a.overlap_param_gather, a.optimizer),
        fixes=(put(a.optimizer, "dist_muon"),),
    ),
    refuse(
        "memory-share-of-engine",
        all_of(
            GENERATES,
            a.use_vllm,
            a.vllm_mode != "server",
            a.vllm_gpu_memory_utilization.given,
            any_of(a.vllm_gpu_memory_utilization > 1, a.vllm_gpu_memory_utilization <= 0),
        ),
        message="--vllm_gpu_memory_utilization is {vllm_gpu_memory_utilization}; it must be from 0 to 1",
        upstream="vllm/config/cache.py",
        at=(a.vllm_gpu_memory_utilization,),
    ),
    refuse(
        "frozen-share-of-stages",
        all_of(a.freeze_parameters_ratio > 0, a.freeze_parameters_ratio < 1, a.pipeline_model_parallel_size > 1),
        message="--freeze_parameters_ratio {freeze_parameters_ratio} cannot be split over pipeline stages",
        upstream=f"{ARGUMENTS}:474",
        at=(a.freeze_parameters_ratio,),
    ),
    refuse(
        "misspelt-target-module",
        all_of(a.tuner_type == "lora", a.misspelt_target != ""),
        message="--target_modules names {misspelt_target}; the keywords for several modules are all-linear, all-embedding and all-router",
        why="no module of the network has that name, so creating the adapters fails after the weights are loaded",
        upstream="swift/megatron/utils/utils.py:96",
        at=(a.target_modules,),
    ),
    refuse(
        "one-generation-a-prompt",
        all_of(
            a.rlhf_type == "grpo",
            a.num_generations == 1,
            a.teacher_model.is_none,
            a.teacher_model_server.is_none,
            a.scale_rewards != "gdpo",
        ),
        message="grpo compares the generations of a prompt, but --num_generations is 1, so there is nothing to compare",
        why="every advantage is 0, so the model learns nothing",
        upstream="swift/rl_core/advantage.py:60",
        severity=Severity.WARNING,
        at=(a.num_generations,),
    ),
    refuse(
        "published-layers-over-stages",
        all_of(
            a.published_layers % a.pipeline_model_parallel_size != 0,
            a.pipeline_model_parallel_layout.is_none,
            FIRST.is_none,
            LAST.is_none,
            ~a.account_for_embedding_in_pipeline_split,
            ~a.account_for_loss_in_pipeline_split,
        ),
        message=(
            "the published {model} has {published_layers} layers, which are not divisible by "
            "{pipeline_model_parallel_size} stages, and neither a layout nor the number of layers in the first or "
            "last stage is given"
        ),
        why="the run fails when the network is built if the model is the unmodified published one",
        upstream="megatron/core/transformer/transformer_block.py:150",
        severity=Severity.WARNING,
        at=(a.pipeline_model_parallel_size, a.model),
    ),
    refuse(
        "prediction-stage-without-layers",
        all_of(a.bare_prediction_stage > 0, a.bridge_backend == "mcore-bridge"),
        message=(
            "stage {bare_prediction_stage} of the layout {pipeline_model_parallel_layout} has an m but no t; ms-swift "
            "builds multi-token prediction layers from the decoder layers of the same stage, and this stage has none"
        ),
        why="building the network fails with an index out of range",
        upstream="megatron/core/models/gpt/gpt_layer_specs.py:761",
        severity=Severity.WARNING,
        at=(a.pipeline_model_parallel_layout,),
    ),
)

LOSSES = (
    *("cross_entropy", "cosine_similarity", "contrastive", "online_contrastive", "infonce"),
    *("pointwise_reranker", "listwise_reranker"),
)
NEWER = ("scoring", "distill_rps", "smooth_brier", "ce_rps")
"""Losses that ms-swift supports since 4.6."""
LATE = "the run fails when its learning-rate schedule is created, after the model is loaded"
SCHEDULER = "megatron/core/optimizer_param_scheduler.py"

MS_SWIFT.add(
    refuse(
        "no-train-length",
        all_of(a.train_iters.is_none, a.num_train_epochs.is_none, ~a.use_ray),
        message="neither a number of epochs nor --train_iters is given, so the length of the training is unknown",
        why=LATE,
        upstream="swift/megatron/utils/megatron_lm_utils.py:583",
        always=True,
        at=(a.num_train_epochs, a.train_iters),
        kind=Kind.ABSENCE,
    ),
    refuse(
        "unknown-loss-scale",
        all_of(
            a.own_loss_scale.is_set,
            ~a.own_loss_scale.is_in(*LOSS_SCALES),
            ~a.own_loss_scale.has("+"),
            ~a.external_plugins,
            ~a.custom_register_path,
        ),
        message="ms-swift has no loss scale {own_loss_scale}, and --external_plugins adds none",
        why="the run fails when the template is created",
        upstream="swift/loss_scale/mapping.py:58",
        at=(a.own_loss_scale,),
    ),
    refuse(
        "unknown-loss",
        all_of(
            a.rlhf_type.is_none,
            a.task_type.is_in("embedding", "reranker", "generative_reranker"),
            a.loss_type.is_set,
            ~a.loss_type.is_in(*LOSSES, *NEWER),
            ~a.external_plugins,
            ~a.custom_register_path,
        ),
        message="ms-swift has no loss {loss_type} for --task_type {task_type}, and --external_plugins adds none",
        why="the run fails with a KeyError when its trainer is created",
        upstream="swift/megatron/trainers/embedding_trainer.py:18",
        at=(a.loss_type,),
    ),
    refuse(
        "minimum-above-rate",
        all_of(a.lr.is_set, a.min_lr > a.lr),
        message="--min_lr {min_lr} is above --lr {lr}",
        why=LATE,
        upstream=f"{SCHEDULER}:151",
        at=(a.min_lr, a.lr),
    ),
    refuse(
        "warm-up-whole-run",
        all_of(a.lr_warmup_fraction.is_set, a.lr_warmup_fraction >= 1),
        message="--lr_warmup_fraction {lr_warmup_fraction} is a fraction of the run and must be below 1",
        why=LATE,
        upstream=f"{SCHEDULER}:160",
        at=(a.lr_warmup_fraction,),
        after=("megatron/warmup-over-decay",),
    ),
    refuse(
        "adapter-options-without-adapters",
        all_of(
            a.tuner_type == "full",
            ~a.adapters.given,
            ~a.mcore_adapter.given,
            any_of(a.lora_rank.given, a.lora_alpha.given, a.target_modules.given, a.lora_dropout.given),
        ),
        message="without --tuner_type lora, all weights are trained, and the LoRA options have no effect",
        why=(
            "training all weights needs many times the memory, and its learning rate is usually a tenth of that for "
            "LoRA"
        ),
        upstream=f"{ARGUMENTS}:449",
        severity=Severity.WARNING,
        at=(a.lora_rank, a.target_modules, a.lora_alpha, a.lora_dropout),
    ),
    refuse(
        "adapters-scaled-by-zero",
        all_of(a.tuner_type != "full", a.lora_alpha == 0),
        message="--lora_alpha 0 multiplies the output of the adapters by 0, so the model does not change",
        upstream="https://github.com/huggingface/peft/blob/v0.7.1/src/peft/tuners/lora/layer.py#scaling",
        severity=Severity.WARNING,
        at=(a.lora_alpha,),
    ),
)

GRPO = a.rlhf_type == "grpo"

MS_SWIFT.add(
    refuse(
        "engine-shorter-than-completions",
        all_of(
            any_of(GRPO, all_of(a.rlhf_type == "gkd", a.lmbda > 0)),
            a.use_vllm,
            a.vllm_max_model_len.is_set,
            a.vllm_max_model_len <= a.max_completion_length,
        ),
        message="--vllm_max_model_len {vllm_max_model_len} must hold a prompt and a completion, but completions alone may "
        "have {max_completion_length} tokens",
        why="completions are cut off before they reach the answer, so the model does not learn to end them",
        upstream="swift/megatron/trainers/rollout_mixin.py",
        severity=Severity.WARNING,
        at=(a.vllm_max_model_len, a.max_completion_length),
    ),
    refuse(
        "clip-range-reversed",
        all_of(GRPO, a.epsilon_high.is_set, a.epsilon_high < a.epsilon),
        message="--epsilon_high {epsilon_high}, the upper end of the clipping range, is below --epsilon {epsilon}",
        why=(
            "methods with two limits use a higher upper limit, so that unlikely tokens can gain probability. A digit "
            "may be wrong"
        ),
        upstream="swift/megatron/trainers/grpo_trainer.py:1053",
        severity=Severity.WARNING,
        at=(a.epsilon_high, a.epsilon),
    ),
    refuse(
        "sampling-at-temperature-zero",
        all_of(GRPO, a.temperature == 0),
        message=(
            "at --temperature 0, all generations of a prompt are identical, and the trainer divides its logits by "
            "the temperature"
        ),
        why="groups of identical generations have no advantage, and log-probabilities are NaN",
        upstream="swift/megatron/trainers/grpo_trainer.py:896",
        severity=Severity.WARNING,
        at=(a.temperature,),
    ),
    refuse(
        "unsupported-in-grpo",
        all_of(GRPO, any_of(a.async_generate, a.sync_ref_model, a.num_iterations > 1)),
        message="GRPO with Megatron does not support --async_generate, --sync_ref_model or --num_iterations above 1",
        upstream=f"{ARGUMENTS}:401",
        at=(a.num_iterations, a.async_generate, a.sync_ref_model),
        fixes=(drop(a.num_iterations), drop(a.async_generate), drop(a.sync_ref_model)),
    ),
    refuse(
        "generation-without-vllm",
        all_of(GRPO, ~a.use_ray, ~a.use_vllm),
        message="GRPO generates with vLLM, but --use_vllm is false",
        upstream=f"{ARGUMENTS}:440",
        at=(a.use_vllm,),
        fixes=(put(a.use_vllm, True, safety=Safety.SAFE),),
    ),
    refuse(
        "truncation-of-prompts",
        all_of(GRPO, a.truncation_strategy.is_set, ~a.truncation_strategy.is_in("left", "delete")),
        message="GRPO supports --truncation_strategy left or delete, not {truncation_strategy}",
        upstream=f"{ARGUMENTS}:417",
        at=(a.truncation_strategy,),
        fixes=(put(a.truncation_strategy, "left"),),
    ),
    refuse(
        "overlong-without-cache",
        all_of(GRPO, a.reward_funcs.has("soft_overlong"), a.soft_cache_length.is_none),
        message="the reward soft_overlong needs --soft_cache_length",
        upstream=f"{ARGUMENTS}:434",
        at=(a.reward_funcs,),
    ),
    refuse(
        "groups-of-real-loss",
        all_of(GRPO, a.loss_type == "real", a.micro_batch_size % a.num_generations != 0),
        message=(
            "--loss_type real needs a micro-batch size that is a multiple of --num_generations {num_generations}, "
            "not {micro_batch_size}"
        ),
        upstream=f"{ARGUMENTS}:404",
        at=(a.micro_batch_size, a.num_generations, a.loss_type),
        fixes=(put(a.micro_batch_size, a.num_generations),),
    ),
    refuse(
        "two-teachers",
        all_of(a.rlhf_type.is_in("gkd", "grpo"), a.teacher_model.is_set, a.teacher_model_server.is_set),
        message="--teacher_model and --teacher_model_server are both given; give only one of them",
        upstream=f"{ARGUMENTS}:352",
        at=(a.teacher_model_server, a.teacher_model),
    ),
    refuse(
        "teacher-server-without-topk",
        all_of(a.rlhf_type == "gkd", a.teacher_model_server.is_set, a.gkd_logits_topk.is_none),
        message="--teacher_model_server returns only the most probable tokens and needs --gkd_logits_topk",
        upstream=f"{ARGUMENTS}:241",
        at=(a.teacher_model_server,),
    ),
    refuse(
        "sequences-of-the-teacher",
        all_of(a.rlhf_type == "gkd", a.seq_kd),
        message="--seq_kd is not supported with Megatron",
        upstream=f"{ARGUMENTS}:249",
        at=(a.seq_kd,),
        fixes=(drop(a.seq_kd),),
    ),
    refuse(
        "adapters-of-the-language-model",
        all_of(a.tuner_type == "lora_llm", any_of(~a.merge_lora, ~a.no_save_optim)),
        message="--tuner_type lora_llm needs --merge_lora true and --no_save_optim true",
        upstream=f"{ARGUMENTS}:877",
        at=(a.tuner_type, a.merge_lora, a.no_save_optim),
    ),
)
