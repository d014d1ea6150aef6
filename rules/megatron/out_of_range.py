"""Numbers outside their meaningful range that Megatron does not check before the first step."""

from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.rules.megatron.option_names import a, all_of, any_of
from preflight.source.finding import Safety, Severity

DROPOUT = "a probability must be between 0 and 1, so the run fails when the model is built"
MEGATRON = ConstraintSet("megatron", why=DROPOUT)
TRAINS = all_of(~a.skip_train, a.entry_trains)
HYBRID = any_of(
    a.hybrid_layer_pattern.is_set,
    a.hybrid_override_pattern.is_set,
    a.entry.is_in("pretrain_mamba.py", "pretrain_hybrid.py"),
)
"""Models for which core 0.12 recomputes nothing."""
UNIFORM = all_of(a.recompute_granularity == "full", a.recompute_method == "uniform", ~HYBRID)
EMBEDDING = "megatron/core/models/common/embeddings/language_model_embedding.py"
ATTENTION = "megatron/core/transformer/dot_product_attention.py"
SCALER = "megatron/core/optimizer/grad_scaler.py"
ROTARY = "megatron/core/models/common/embeddings/rotary_pos_embedding.py"
"""torch.nn.Dropout; Transformer Engine also builds one, whatever the backend (006b336,
dot_product_attention/backends.py, UnfusedDotProductAttention)."""

MEGATRON.add(
    refuse(
        "recompute-layers-not-positive",
        all_of(UNIFORM, a.recompute_num_layers.is_set, a.recompute_num_layers <= 0),
        message=(
            "--recompute-num-layers is {recompute_num_layers}; it must be at least 1, because uniform recomputation "
            "otherwise never reaches the last layer"
        ),
        why="the first forward pass never ends, so the job hangs until its time limit",
        at=(a.recompute_num_layers,),
        fixes=(put(a.recompute_num_layers, 1),),
    ),
    refuse(
        "log-interval-zero",
        all_of(TRAINS, a.log_interval == 0),
        message="--log-interval must be at least 1, not 0, because the first step divides by this interval",
        why="the run stops after the first step. To log less often, use a larger interval",
        at=(a.log_interval,),
        fixes=(put(a.log_interval, 100, safety=Safety.SAFE),),
    ),
    refuse(
        "eval-interval-zero",
        all_of(TRAINS, a.eval_interval == 0, a.train_samples.is_none, ~a.full_validation),
        message=(
            "--eval-interval must be at least 1, not 0, because the number of training iterations is divided by this "
            "interval"
        ),
        why="the run stops when the datasets are built. To evaluate rarely, give a large number",
        at=(a.eval_interval,),
    ),
    refuse(
        "tensorboard-interval-zero",
        all_of(TRAINS, a.tensorboard_log_interval == 0, a.tensorboard_dir.is_set),
        message="--tensorboard-log-interval must be at least 1, not 0, because the first step divides by this interval",
        why="the last rank stops after the first step",
        at=(a.tensorboard_log_interval,),
    ),
    refuse(
        "workers-negative",
        all_of(TRAINS, a.num_workers < 0, a.dataloader_type != "external"),
        message="--num-workers is {num_workers}; it must be at least 0 (with 0, the rank itself reads the data)",
        why="torch's data loader rejects a negative number when the datasets are built",
        at=(a.num_workers,),
        upstream="https://pytorch.org/docs/2.9/data.html#torch.utils.data.DataLoader",
    ),
    refuse(
        "seed-not-positive",
        all_of(a.seed.given, a.seed <= 0),
        message="--seed is {seed}; it must be at least 1",
        why="the initialization of the random number generators rejects the seed before anything is built",
        at=(a.seed,),
        upstream="megatron/training/initialize.py",
    ),
    refuse(
        "save-interval-zero",
        all_of(TRAINS, a.save.given, a.save_interval.given, a.save_interval == 0),
        message=(
            "--save-interval must be at least 1, not 0, because the step number is divided by this interval at the "
            "end of the run"
        ),
        why="nothing is saved during the run, and the run stops before it saves its final weights",
        at=(a.save_interval,),
        upstream="megatron/training/training.py",
        after=("megatron/save-interval-not-positive",),
    ),
    refuse(
        "loss-scale-negative",
        all_of(TRAINS, a.fp16, a.loss_scale.given, a.loss_scale < 0),
        message=(
            "--loss-scale must be above 0, not {loss_scale}; without the option, the loss scale is adjusted "
            "automatically"
        ),
        why="the optimizer rejects the value when it is built",
        at=(a.loss_scale,),
        upstream=SCALER,
    ),
    refuse(
        "dynamic-loss-scale-out-of-range",
        all_of(
            TRAINS,
            a.fp16,
            a.loss_scale.is_none,
            any_of(
                a.initial_loss_scale <= 0,
                a.min_loss_scale <= 0,
                a.min_loss_scale > a.initial_loss_scale,
                a.loss_scale_window <= 0,
                a.hysteresis <= 0,
            ),
        ),
        message=(
            "the loss scale starts at {initial_loss_scale}, with a minimum of {min_loss_scale}, a window of "
            "{loss_scale_window} and a hysteresis of {hysteresis}, but all must be above 0, and the start must not be "
            "below the minimum"
        ),
        why="the optimizer rejects the value when it is built",
        at=(a.initial_loss_scale, a.min_loss_scale, a.loss_scale_window, a.hysteresis),
        upstream=SCALER,
    ),
    refuse(
        "manual-gc-interval-negative",
        all_of(TRAINS, a.manual_gc, a.manual_gc_interval < 0),
        message="--manual-gc-interval is {manual_gc_interval}; it must be at least 0",
        why="the run stops before its first step",
        at=(a.manual_gc_interval,),
    ),
    refuse(
        "hidden-dropout-out-of-range",
        any_of(a.hidden_dropout < 0, a.hidden_dropout > 1),
        message="--hidden-dropout {hidden_dropout} must lie between 0 and 1",
    ),
    refuse(
        "attention-dropout-out-of-range",
        any_of(a.attention_dropout < 0, a.attention_dropout > 1),
        message="--attention-dropout {attention_dropout} must lie between 0 and 1",
    ),
    refuse(
        "rotary-percent-above-one",
        all_of(a.position_embedding_type == "rope", a.rotary_percent > 1),
        message=(
            "--rotary-percent {rotary_percent} counts as 1, because it is a fraction, not a percentage; each head "
            "is rotated completely"
        ),
        why="the run silently trains a different model",
        severity=Severity.WARNING,
        at=(a.rotary_percent,),
    ),
    refuse(
        "learning-rate-above-one",
        all_of(TRAINS, a.optimizer == "adam", a.lr > 1),
        message=(
            "--lr {lr} makes Adam move every weight by about this much per step; a minus sign may be missing, as in "
            "3e-4"
        ),
        why="the loss diverges at the end of the warm-up or earlier",
        severity=Severity.WARNING,
        at=(a.lr,),
        upstream="https://arxiv.org/abs/1412.6980v9#section-2.1",
    ),
    refuse(
        "adam-beta-out-of-range",
        all_of(
            TRAINS,
            a.optimizer == "adam",
            any_of(a.adam_beta1 < 0, a.adam_beta1 >= 1, a.adam_beta2 < 0, a.adam_beta2 >= 1),
        ),
        message="Adam's betas {adam_beta1} and {adam_beta2} must be at least 0 and below 1",
        why="the averages of the gradients grow instead of fading, or never change",
        severity=Severity.WARNING,
        at=(a.adam_beta1, a.adam_beta2),
        upstream="https://arxiv.org/abs/1412.6980",
    ),
)
