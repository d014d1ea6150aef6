"""Options that lack a companion option, so the run starts but the options do not have the intended effect."""

from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.rules.megatron.option_names import a, all_of, any_of
from preflight.source.finding import Severity

MEGATRON = ConstraintSet("megatron", why="the learning rate is still rising when the run stops")
TRAINS = all_of(~a.skip_train, a.entry_trains)
TRIAL = 100
"""A run with fewer iterations is a trial rather than a training run."""
LONG = 1_000
"""Trials with samples are often longer, and keep the schedule of the long run."""
LATENT = any_of(a.q_lora_rank.given, a.qk_head_dim.given, a.qk_pos_emb_head_dim.given, a.v_head_dim.given)

ONE_P = any_of(a.layernorm_zero_centered_gamma, a.apply_layernorm_1p)

MEGATRON.add(
    refuse(
        "global-batch-left-out",
        all_of(
            TRAINS,
            a.pipeline_model_parallel_size > 2,
            ~a.global_batch_size.given,
            ~a.rampup_batch_size.given,
            ~a.step_batch_size_schedule.given,
            a.train_iters.given,
        ),
        message="without --global-batch-size, a step is one micro-batch per data-parallel rank, so only one of "
        "{pipeline_model_parallel_size} pipeline stages works at a time",
        why=(
            "the global batch size is then the micro-batch size times the data-parallel size, so the pipeline is "
            "never filled, and each step trains on far fewer samples than usual"
        ),
        severity=Severity.WARNING,
        at=(a.pipeline_model_parallel_size,),
    ),
    refuse(
        "training-within-warmup",
        all_of(
            TRAINS,
            a.train_iters > 1,
            a.lr_warmup_iters.given,
            a.lr_decay_iters.given,
            a.lr_warmup_iters >= a.train_iters,
            any_of(a.train_iters >= TRIAL, a.save.given),
        ),
        message=(
            "training ends after {train_iters} iterations, within the warm-up of {lr_warmup_iters} "
            "iterations, so --lr is never reached"
        ),
        severity=Severity.WARNING,
        at=(a.train_iters, a.lr_warmup_iters),
        after=("megatron/warmup-over-decay", "megatron/warmup-fraction-and-iterations"),
    ),
    refuse(
        "training-within-sample-warmup",
        all_of(
            TRAINS,
            a.train_samples > 0,
            a.lr_warmup_samples > 0,
            a.lr_decay_samples.given,
            a.lr_warmup_samples >= a.train_samples,
            a.train_samples >= a.global_batch_size * LONG,
        ),
        message=(
            "training ends after {train_samples} samples, within the warm-up of {lr_warmup_samples} samples, so --lr "
            "is never reached"
        ),
        severity=Severity.WARNING,
        at=(a.train_samples, a.lr_warmup_samples),
        after=("megatron/warmup-over-decay",),
    ),
    refuse(
        "quantized-over-float32",
        all_of(TRAINS, a.fp8.is_set, ~a.bf16, ~a.fp16),
        message=(
            "the FP8 format {fp8} is given without --bf16 or --fp16, so weights, gradients and everything outside of "
            "FP8 are float32"
        ),
        why="the run needs twice the memory, and FP8 speeds up only the matrix products",
        severity=Severity.WARNING,
        at=(a.fp8,),
        fixes=(put(a.bf16),),
    ),
    refuse(
        "quantized-without-transformer-engine",
        all_of(a.fp8.is_set, a.transformer_impl == "local"),
        message="--transformer-impl local does not support FP8, so {fp8} is silently off",
        why="only the layers of Transformer Engine compute in FP8",
        severity=Severity.WARNING,
        at=(a.transformer_impl, a.fp8),
        fixes=(put(a.transformer_impl, "transformer_engine"),),
        after=("megatron/plain-norm-with-1p",),
    ),
    refuse(
        "plain-norm-with-1p",
        all_of(a.transformer_impl == "local", a.normalization == "RMSNorm", ONE_P, a.spec.is_none),
        message=(
            "--apply-layernorm-1p needs --transformer-impl transformer_engine, not local, because PyTorch's RMSNorm "
            "does not support it"
        ),
        why="an assertion fails when the model is built",
        at=(a.transformer_impl, a.layernorm_zero_centered_gamma, a.apply_layernorm_1p),
        fixes=(put(a.transformer_impl, "transformer_engine"),),
        unless_framework="mindspeed",
    ),
    refuse(
        "save-interval-without-save",
        all_of(
            TRAINS,
            a.save_interval.given,
            a.save.is_none,
            a.save_interval <= a.train_iters,
            a.train_iters >= TRIAL,
        ),
        message="--save-interval {save_interval} has no effect without --save, so no checkpoint is written",
        why="the trained weights are lost when the job ends",
        severity=Severity.WARNING,
        at=(a.save_interval,),
        after=("slime/save-interval-without-save", "megatron/nothing-saved"),
    ),
    refuse(
        "wandb-project-without-name",
        all_of(
            TRAINS, a.entry == "pretrain_gpt.py", a.wandb_project.given, a.wandb_project != "", a.wandb_exp_name == ""
        ),
        message="--wandb-project {wandb_project} needs --wandb-exp-name, whose default is empty",
        why="the last rank rejects an empty name when it opens the log, and the job fails",
        upstream="megatron/training/global_vars.py:190",
        at=(a.wandb_project,),
    ),
    refuse(
        "recompute-modules-without-granularity",
        all_of(TRAINS, a.recompute_modules.given, a.recompute_modules.length > 0, a.recompute_granularity.is_none),
        message="--recompute-modules has no effect without --recompute-granularity selective, so nothing is recomputed",
        why="the modules are read only with the selective granularity, so the run needs more memory than planned",
        severity=Severity.WARNING,
        at=(a.recompute_modules,),
        fixes=(put(a.recompute_granularity, "selective"),),
    ),
    refuse(
        "rope-factor-without-scaling",
        all_of(TRAINS, a.rope_scaling_factor.given, a.rope_scaling_factor > 1, ~a.use_rope_scaling),
        message="--rope-scaling-factor {rope_scaling_factor} has no effect without --use-rope-scaling",
        why="the rotary frequencies are not scaled, so weights that were trained with scaling see different positions",
        severity=Severity.WARNING,
        at=(a.rope_scaling_factor,),
        fixes=(put(a.use_rope_scaling),),
        unless_framework="mindspeed",
    ),
    refuse(
        "gc-interval-without-manual-gc",
        all_of(TRAINS, a.manual_gc_interval.given, a.manual_gc_interval > 0, ~a.manual_gc),
        message=(
            "--manual-gc-interval {manual_gc_interval} has no effect without --manual-gc, so each rank collects "
            "garbage at a different time"
        ),
        why=(
            "ranks that pause for garbage collection at different steps make all other ranks wait. The interval is "
            "read only with --manual-gc"
        ),
        severity=Severity.WARNING,
        at=(a.manual_gc_interval,),
        fixes=(put(a.manual_gc),),
    ),
    refuse(
        "query-groups-left-out",
        all_of(a.group_query_attention, ~a.num_query_groups.given, a.num_attention_heads > 1),
        message=(
            "--group-query-attention is given without --num-query-groups, so all {num_attention_heads} heads share "
            "one key and value head"
        ),
        why="the default is one group, which is multi-query attention",
        severity=Severity.WARNING,
        at=(a.group_query_attention,),
        upstream="megatron/training/arguments.py",
    ),
    refuse(
        "latent-rank-left-out",
        all_of(a.multi_latent_attention, LATENT, ~a.kv_lora_rank.given),
        message="--kv-lora-rank is not set, so keys and values are compressed to the default, {kv_lora_rank}",
        why="the default is far below the rank of published models (512), so a different model is trained",
        severity=Severity.WARNING,
        at=(a.multi_latent_attention,),
    ),
    refuse(
        "latent-options-without-switch",
        all_of(
            ~a.multi_latent_attention,
            a.kv_lora_rank.given,
            any_of(a.qk_head_dim.given, a.qk_pos_emb_head_dim.given),
        ),
        message="--kv-lora-rank {kv_lora_rank} has no effect without --multi-latent-attention",
        why=(
            "plain attention is built, so the model differs from the intended one. A --spec with latent attention fails"
        ),
        severity=Severity.WARNING,
        at=(a.kv_lora_rank,),
        fixes=(put(a.multi_latent_attention),),
    ),
    refuse(
        "spec-without-function",
        all_of(a.spec.length == 1, ~a.spec.has("local")),
        message="--spec has only one word, but it needs a module and the name of a function in that module",
        why="building the model needs both words, so the run fails at launch",
    ),
    refuse(
        "window-frequency-without-window",
        all_of(TRAINS, a.window_attn_skip_freq.is_set, a.window_size.is_none),
        message="--window-attn-skip-freq has no effect without --window-size, so every layer attends to all tokens",
        why="no check requires the window, and a different network is trained",
        severity=Severity.WARNING,
        at=(a.window_attn_skip_freq,),
        upstream="megatron/core/transformer/utils.py:457",
    ),
)
