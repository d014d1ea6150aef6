"""Checks of the learning-rate and weight-decay schedules."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, refuse
from preflight.rules.megatron.option_names import REFUSED, a, all_of
from preflight.source.finding import Safety

LATE = "the run stops after the model is built, when its learning-rate schedule is created"
MEGATRON = ConstraintSet("megatron", why=LATE)
TRAINS = all_of(~a.skip_train, a.entry_trains)
CONSTANT = a.weight_decay_incr_style == "constant"

MEGATRON.add(
    refuse(
        "min-lr-above-lr",
        all_of(a.lr.is_set, a.min_lr > a.lr),
        message="--min-lr {min_lr} is above --lr {lr}",
        why=REFUSED,
        at=(a.min_lr, a.lr),
        fixes=(drop(a.min_lr),),
    ),
    refuse(
        "min-lr-negative",
        all_of(TRAINS, a.min_lr < 0),
        message="--min-lr {min_lr} is negative",
        at=(a.min_lr,),
        fixes=(drop(a.min_lr),),
    ),
    refuse(
        "warmup-start-above-lr",
        all_of(TRAINS, a.lr.is_set, a.lr_warmup_init > a.lr),
        message="the warm-up starts at {lr_warmup_init}, above --lr {lr}",
        at=(a.lr_warmup_init, a.lr),
        fixes=(drop(a.lr_warmup_init),),
    ),
    refuse(
        "decay-not-positive",
        all_of(TRAINS, a.lr_decay_steps <= 0),
        message="the learning rate decays over {lr_decay_steps} samples, but the decay must last at least 1",
        at=(a.lr_decay_iters, a.lr_decay_samples, a.train_iters, a.train_samples),
        after=("megatron/global-batch-not-positive",),
    ),
    refuse(
        "warmup-over-decay",
        all_of(TRAINS, a.lr_decay_steps > 0, a.lr_warmup_steps >= a.lr_decay_steps),
        message="the warm-up of {lr_warmup_steps} samples must be shorter than the decay of {lr_decay_steps} samples",
        at=(a.lr_warmup_iters, a.lr_warmup_samples, a.lr_warmup_fraction, a.lr_decay_iters, a.lr_decay_samples),
    ),
    refuse(
        "wsd-without-decay-length",
        all_of(TRAINS, a.lr_decay_style == "WSD", a.lr_wsd_decay_steps.is_none),
        message=(
            "the WSD decay style needs --lr-wsd-decay-iters, or --lr-wsd-decay-samples if training is "
            "counted in samples"
        ),
        at=(a.lr_decay_style,),
    ),
    refuse(
        "weight-decay-start-negative",
        all_of(TRAINS, a.start_weight_decay < 0),
        message="weight decay starts at {start_weight_decay}; it must not be negative",
        at=(a.start_weight_decay, a.weight_decay),
    ),
    refuse(
        "weight-decay-shrinks",
        all_of(TRAINS, a.start_weight_decay >= 0, a.end_weight_decay < a.start_weight_decay),
        message="--end-weight-decay {end_weight_decay} must be at least --start-weight-decay {start_weight_decay}",
        at=(a.end_weight_decay, a.start_weight_decay),
        after=("megatron/constant-weight-decay-start",),
    ),
    conflicts(
        "constant-weight-decay-start",
        CONSTANT,
        a.start_weight_decay.given,
        message="weight decay is constant, so --start-weight-decay has no effect; --weight-decay sets it",
        why=REFUSED,
        at=(a.start_weight_decay, a.weight_decay_incr_style),
        fixes=(drop(a.start_weight_decay, also=(a.end_weight_decay,)),),
    ),
    conflicts(
        "constant-weight-decay-end",
        CONSTANT,
        a.end_weight_decay.given,
        message="weight decay is constant, so --end-weight-decay has no effect; --weight-decay sets it",
        why=REFUSED,
        at=(a.end_weight_decay, a.weight_decay_incr_style),
        fixes=(drop(a.end_weight_decay, also=(a.start_weight_decay,)),),
    ),
    refuse(
        "weight-decay-start-missing",
        all_of(~CONSTANT, a.start_weight_decay.is_none),
        message="--weight-decay-incr-style {weight_decay_incr_style} needs --start-weight-decay",
        why=REFUSED,
        at=(a.weight_decay_incr_style,),
        fixes=(drop(a.weight_decay_incr_style),),
    ),
    refuse(
        "weight-decay-end-missing",
        all_of(~CONSTANT, a.end_weight_decay.is_none),
        message="--weight-decay-incr-style {weight_decay_incr_style} needs --end-weight-decay",
        why=REFUSED,
        at=(a.weight_decay_incr_style,),
        fixes=(drop(a.weight_decay_incr_style),),
    ),
    conflicts(
        "scheduler-from-both",
        all_of(TRAINS, a["override_opt_param_scheduler"]),
        a["use_checkpoint_opt_param_scheduler"],
        message="--override-opt_param-scheduler and --use-checkpoint-opt_param-scheduler contradict each other",
        at=(a["use_checkpoint_opt_param_scheduler"], a["override_opt_param_scheduler"]),
        fixes=(
            drop(a["use_checkpoint_opt_param_scheduler"], safety=Safety.UNSAFE),
            drop(a["override_opt_param_scheduler"]),
        ),
    ),
)
