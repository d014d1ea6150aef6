"""Checks of training, warm-up and decay lengths, which must be given in either iterations or samples."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, refuse
from preflight.rules.megatron.option_names import REFUSED, a, all_of
from preflight.source.finding import Kind, Safety, Severity

MEGATRON = ConstraintSet("megatron", why=REFUSED)
# A run that skips training does not check its schedule. (Core 0.12 checks it even then; such runs are not reported
# here.)
ITERATIONS = all_of(a.train_iters.written, ~a.skip_train)
SAMPLES = all_of(a.train_samples, ~a.skip_train)
RAMP = a.rampup_batch_size

MEGATRON.add(
    conflicts(
        "iterations-and-samples",
        ITERATIONS,
        a.train_samples.is_set,
        message="--train-iters {train_iters} and --train-samples {train_samples} both set the length of the training",
        at=(a.train_samples, a.train_iters),
        fixes=(drop(a.train_samples), drop(a.train_iters)),
    ),
    conflicts(
        "decay-samples-with-iterations",
        ITERATIONS,
        a.lr_decay_samples.is_set,
        message=(
            "training is counted in iterations; use --lr-decay-iters instead of --lr-decay-samples {lr_decay_samples}"
        ),
        at=(a.lr_decay_samples, a.train_iters),
        fixes=(drop(a.lr_decay_samples),),
        after=("megatron/iterations-and-samples",),
    ),
    conflicts(
        "warmup-samples-with-iterations",
        ITERATIONS,
        a.lr_warmup_samples != 0,
        message=(
            "training is counted in iterations; use --lr-warmup-iters instead of --lr-warmup-samples "
            "{lr_warmup_samples}"
        ),
        at=(a.lr_warmup_samples, a.train_iters),
        fixes=(drop(a.lr_warmup_samples),),
        after=("megatron/iterations-and-samples", "megatron/decay-samples-with-iterations"),
    ),
    conflicts(
        "warmup-fraction-and-iterations",
        all_of(ITERATIONS, a.lr_warmup_fraction.is_set),
        a.lr_warmup_iters != 0,
        message=(
            "--lr-warmup-fraction {lr_warmup_fraction} and --lr-warmup-iters {lr_warmup_iters} both set the length "
            "of the warm-up"
        ),
        at=(a.lr_warmup_fraction, a.lr_warmup_iters),
        fixes=(drop(a.lr_warmup_fraction), drop(a.lr_warmup_iters)),
    ),
    refuse(
        "no-iterations-with-samples",
        all_of(SAMPLES, a.train_iters.written == 0),
        message="training is counted in samples, so --train-iters cannot be given, not even as 0",
        at=(a.train_iters, a.train_samples),
        fixes=(drop(a.train_iters, safety=Safety.SAFE),),
    ),
    conflicts(
        "decay-iterations-with-samples",
        SAMPLES,
        a.lr_decay_iters.is_set,
        message="training is counted in samples; use --lr-decay-samples instead of --lr-decay-iters {lr_decay_iters}",
        at=(a.lr_decay_iters, a.train_samples),
        fixes=(drop(a.lr_decay_iters),),
        after=("megatron/iterations-and-samples",),
    ),
    conflicts(
        "warmup-iterations-with-samples",
        SAMPLES,
        a.lr_warmup_iters != 0,
        message=(
            "training is counted in samples; use --lr-warmup-samples instead of --lr-warmup-iters {lr_warmup_iters}"
        ),
        at=(a.lr_warmup_iters, a.train_samples),
        fixes=(drop(a.lr_warmup_iters),),
        after=("megatron/iterations-and-samples", "megatron/decay-iterations-with-samples"),
    ),
    conflicts(
        "warmup-fraction-and-samples",
        all_of(SAMPLES, a.lr_warmup_fraction.is_set),
        a.lr_warmup_samples != 0,
        message=(
            "--lr-warmup-fraction {lr_warmup_fraction} and --lr-warmup-samples {lr_warmup_samples} both set the "
            "length of the warm-up"
        ),
        at=(a.lr_warmup_fraction, a.lr_warmup_samples),
        fixes=(drop(a.lr_warmup_fraction), drop(a.lr_warmup_samples)),
    ),
    refuse(
        "no-train-length",
        all_of(~a.train_iters.written, ~a.train_iters, ~a.train_samples, ~a.skip_train, a.entry_is_known),
        message="neither --train-iters nor --train-samples is set, so the length of the training is unknown",
        why="the run stops after the model is built, when its learning-rate schedule is created",
        always=True,
        at=(a.train_iters, a.train_samples),
        unless_framework="mindspeed",
        kind=Kind.ABSENCE,
    ),
    conflicts(
        "ramp-with-iterations",
        a.train_iters.written,
        all_of(RAMP.is_set, ~a.skip_train),
        message="--rampup-batch-size counts samples and needs --train-samples instead of --train-iters",
        at=(RAMP, a.train_iters),
        fixes=(drop(RAMP, safety=Safety.UNSAFE),),
    ),
)

MINDSPEED = ConstraintSet("mindspeed")
MINDSPEED.add(
    refuse(
        "no-train-length",
        all_of(~a.train_iters.written, ~a.train_samples, ~a.skip_train, a.entry_is_known),
        message="neither --train-iters nor --train-samples is set, so the length of the training is unknown",
        why="a run that trains stops after the model is built, when its learning-rate schedule is created",
        upstream="",
        severity=Severity.WARNING,
        always=True,
        at=(a.train_iters, a.train_samples),
        after=("megatron/required-argument",),
    ),
)
