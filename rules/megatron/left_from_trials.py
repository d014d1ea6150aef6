"""Settings of trials and debugging sessions that are left in a long run."""

from preflight.lint.constraint import ConstraintSet, refuse
from preflight.rules.megatron.option_names import TRAINING, a, all_of, any_of
from preflight.source.finding import Severity

MEGATRON = ConstraintSet("megatron", why="no check covers this value, and the run is not the one that was intended")
TRAINS = all_of(~a.skip_train, a.entry_trains)
TRIAL = 1_000
"""Runs with fewer iterations are trials: their options are often copied from the long run."""
LONG = 10_000
"""Runs with more iterations are not shortened trials."""
WINDOW = 100
"""Ten times the longest window in published files, 10 iterations."""
PART = 10
"""A run that ends before a tenth of its length."""
RECIPE = any_of(a.train_iters >= TRIAL, a.train_samples >= a.global_batch_size * TRIAL)


MEGATRON.add(
    refuse(
        "profiler-over-many-steps",
        all_of(
            TRAINS,
            RECIPE,
            a.profile,
            a.profile_step_end.given,
            a.profile_step_end - a.profile_step_start >= WINDOW,
        ),
        message=(
            "the profiler records iterations {profile_step_start} to {profile_step_end}, but published runs record at "
            "most 10"
        ),
        why=(
            "profiled iterations are slower, and PyTorch's profiler keeps all of their events in host memory until the "
            "last one. The option may be left from a measurement"
        ),
        severity=Severity.WARNING,
        at=(a.profile_step_end, a.profile_step_start, a.profile),
        upstream=TRAINING,
    ),
    refuse(
        "checkpoint-after-each-step",
        all_of(
            TRAINS,
            RECIPE,
            a.save.given,
            a.save_interval.given,
            a.save_interval == 1,
            ~a.save_retain_interval.given,
            ~a.no_save_optim,
        ),
        message="--save-interval 1 writes a checkpoint after each iteration",
        why=(
            "a checkpoint with optimizer state takes about 14 bytes per parameter, so writing takes longer than training, "
            "and the disk fills up. A digit may be missing, or the value is left from a trial"
        ),
        severity=Severity.WARNING,
        at=(a.save_interval,),
        upstream=TRAINING,
    ),
    refuse(
        "clipping-off",
        all_of(
            TRAINS,
            RECIPE,
            a.entry != "pretrain_bert.py",
            a.clip_grad.given,
            a.clip_grad == 0,
            a.optimizer == "adam",
        ),
        message="--clip-grad 0 turns gradient clipping off, but nearly all published runs of Megatron clip at 0.3 to 10",
        why="one batch with a large gradient can then undo many steps; 0 does not mean that gradients are clipped to 0",
        severity=Severity.WARNING,
        at=(a.clip_grad,),
        upstream="megatron/core/optimizer/optimizer.py",
    ),
    refuse(
        "ends-at-exit-interval",
        all_of(
            TRAINS,
            a.exit_interval.given,
            a.exit_interval > 0,
            a.train_iters >= LONG,
            a.exit_interval * PART < a.train_iters,
            a.save.given,
            any_of(~a.load.given, all_of(a.load != a.save, a.finetune)),
        ),
        message=(
            "--exit-interval {exit_interval} ends the run at iteration {exit_interval} of {train_iters}, and a new start "
            "does not continue from there, because --load is not the folder of --save"
        ),
        why="the program exits with status 0, so the job looks complete. The option may be left from a trial",
        severity=Severity.WARNING,
        at=(a.exit_interval, a.train_iters),
        upstream=TRAINING,
    ),
    refuse(
        "half-unscaled",
        all_of(TRAINS, RECIPE, a.fp16, a.loss_scale.given, a.loss_scale > 0, a.loss_scale <= 1),
        message="--loss-scale {loss_scale} with --fp16 leaves the loss unscaled, so small gradients become 0",
        why=(
            "float16 rounds values below 6e-8 to 0; without the option, the scale is adjusted during the run, and published "
            "static scales are 4096 and more"
        ),
        severity=Severity.WARNING,
        at=(a.loss_scale,),
        upstream="megatron/core/optimizer/grad_scaler.py",
    ),
)
