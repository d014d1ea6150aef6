"""Options that are accepted but have no effect, or that silently cost memory, time or data."""

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.lint.expressions import where
from preflight.rules.megatron.option_names import a, all_of, any_of
from preflight.source.finding import Safety, Severity

NOTICE = "the only sign is one message among thousands of log lines"
MEGATRON = ConstraintSet("megatron", why=NOTICE)
INDEXED = a.entry.is_in(
    "pretrain_gpt.py", "pretrain_mamba.py", "pretrain_hybrid.py", "pretrain_bert.py", "pretrain_t5.py"
)
"""Programs that read indexed data and split it by this option."""
TRAINS = all_of(a.train_iters.written, ~a.skip_train, a.entry_trains)

MEGATRON.add(
    refuse(
        "ramp-ignored",
        a.rampup_batch_size.is_set,
        message=(
            "--rampup-batch-size has no effect in this release, so the batch is {global_batch_size} from the first step"
        ),
        why=(
            "since April 2026, the value is not passed on (NVIDIA/Megatron-LM#4411). --step-batch-size-schedule "
            "replaces the option"
        ),
        severity=Severity.WARNING,
        fixes=(drop(a.rampup_batch_size, safety=Safety.SAFE),),
    ),
    refuse(
        "old-checkpoint-switch",
        a.use_dist_ckpt_deprecated,
        message="--use-dist-ckpt has no effect; --ckpt-format sets the format, here {ckpt_format}",
        severity=Severity.NOTE,
        fixes=(drop(a.use_dist_ckpt_deprecated, safety=Safety.SAFE),),
    ),
    refuse(
        "old-checkpoint-format",
        a.dist_ckpt_format_deprecated.is_set,
        message="--dist-ckpt-format has no effect; --ckpt-format sets the format, here {ckpt_format}",
        severity=Severity.NOTE,
        fixes=(drop(a.dist_ckpt_format_deprecated, safety=Safety.SAFE),),
    ),
    refuse(
        "old-parallel-save",
        a.ckpt_fully_parallel_save_deprecated,
        message="--ckpt-fully-parallel-save has no effect; saving in parallel is the default",
        severity=Severity.NOTE,
        fixes=(drop(a.ckpt_fully_parallel_save_deprecated, safety=Safety.SAFE),),
    ),
    refuse(
        "checkpoint-bound-to-layout",
        all_of(a.use_dist_ckpt, ~a.ckpt_fully_parallel_save, a.use_distributed_optimizer, a.save.is_set),
        message="checkpoints saved with --no-ckpt-fully-parallel-save can be loaded only into the same parallel layout",
        why=(
            "the optimizer states are saved in their current layout, so a job that resumes on other ranks fails "
            "after waiting in the queue"
        ),
        severity=Severity.NOTE,
        at=(a.ckpt_fully_parallel_save,),
        fixes=(drop(a.ckpt_fully_parallel_save, safety=Safety.SAFE),),
    ),
    refuse(
        "split-left-to-upstream",
        all_of(a.data_path.given, ~a.split.given, any_of(~INDEXED, a.skip_train, a.dataloader_type == "external")),
        message="--data-path without --split trains on 96.9% of the data, because --split defaults to 969, 30, 1",
        why=(
            "this is an old default, and upstream warns about it. --split sets the shares of training, "
            "validation and test data"
        ),
        severity=Severity.NOTE,
        at=(a.data_path,),
    ),
    refuse(
        "default-split",
        all_of(a.data_path.given, ~a.split.given, ~a.skip_train, INDEXED, a.dataloader_type != "external"),
        message="--data-path without --split trains on 96.9% of the data, because --split defaults to 969, 30, 1",
        why=(
            "this is an old default, and upstream warns about it. --split sets the shares of training, "
            "validation and test data"
        ),
        severity=Severity.WARNING,
        at=(a.data_path,),
    ),
    refuse(
        "mxfp8-holds-more-memory",
        all_of(a.fp8.is_set, a.fp8_recipe == "mxfp8", ~a.reuse_grad_buf_for_mxfp8_param_ag, ~a.use_megatron_fsdp),
        message=(
            "mxfp8 without --reuse-grad-buf-for-mxfp8-param-ag and --fp8-param-gather keeps the weights in bf16 as well"
        ),
        why="upstream warns that this needs significantly more memory",
        severity=Severity.NOTE,
        at=(a.fp8_recipe, a.fp8),
    ),
    refuse(
        "decay-ends-early",
        all_of(
            TRAINS,
            a.lr_decay_iters.given,
            a.lr_decay_iters > 0,
            a.lr_decay_iters < a.train_iters,
            ~a.lr_decay_style.is_in("constant", "WSD"),
        ),
        message="the learning rate is at its minimum from iteration {lr_decay_iters} of {train_iters}",
        why=(
            "--lr-decay-iters counts from the start, including the warm-up. Subtracting the warm-up ends the "
            "decay too early (NVIDIA/Megatron-LM#2258)"
        ),
        severity=Severity.NOTE,
        at=(a.lr_decay_iters, a.train_iters),
        fixes=(
            put(
                a.lr_decay_iters,
                where(a.lr_decay_iters + a.lr_warmup_iters == a.train_iters, a.train_iters),
                offered=True,
            ),
        ),
        after=("megatron/warmup-over-decay", "megatron/decay-far-too-early"),
    ),
    refuse(
        "decay-ends-early-in-samples",
        all_of(
            ~a.skip_train,
            a.lr_decay_samples.given,
            a.lr_decay_samples > 0,
            a.lr_decay_samples < a.train_samples,
            ~a.lr_decay_style.is_in("constant", "WSD"),
        ),
        message="the learning rate is at its minimum from sample {lr_decay_samples} of {train_samples}",
        why=(
            "--lr-decay-samples counts from the start, including the warm-up. After that number of samples, the "
            "learning rate is constant"
        ),
        severity=Severity.NOTE,
        at=(a.lr_decay_samples, a.train_samples),
        fixes=(
            put(
                a.lr_decay_samples,
                where(a.lr_decay_samples + a.lr_warmup_samples == a.train_samples, a.train_samples),
                offered=True,
            ),
        ),
        after=("megatron/warmup-over-decay", "megatron/decay-far-too-early"),
    ),
    refuse(
        "fewer-samples-than-a-batch",
        all_of(
            a.train_samples > 0,
            a.step_batch_size_schedule.is_none,
            a.rampup_batch_size.is_none,
            a.train_samples < a.global_batch_size,
        ),
        message=(
            "{train_samples} samples are less than one global batch of {global_batch_size}, so the run trains for 0 "
            "steps"
        ),
        why="samples are converted to whole steps, rounded down, so the run ends immediately and reports success",
        severity=Severity.WARNING,
        at=(a.train_samples, a.global_batch_size),
    ),
    refuse(
        "fsdp-with-model-parallel",
        all_of(
            any_of(a.use_torch_fsdp2, a.use_megatron_fsdp),
            any_of(a.tensor_model_parallel_size > 1, a.context_parallel_size > 1),
            a.device_architecture < 10,
            a.device_architecture != 0,
        ),
        message=(
            "sharded data parallelism needs CUDA_DEVICE_MAX_CONNECTIONS above 1, but tensor and context parallelism "
            "need 1, so one of them is slow"
        ),
        why="on devices before Blackwell, both kinds of parallelism depend on the order of their kernels",
        severity=Severity.NOTE,
        at=(a.use_megatron_fsdp, a.use_torch_fsdp2),
        versions=">=0.13",
    ),
)
