"""Checks for restarts without optimizer state, short warm-ups, and a dropout that is left on."""

from preflight.lint.constraint import Constraint, ConstraintSet, refuse
from preflight.lint.expressions import Handle
from preflight.rules.megatron.option_names import SCHEDULER, a, all_of, any_of
from preflight.source.finding import Severity

MEGATRON = ConstraintSet("megatron", why="no check covers this value, and the run is not the one that was intended")
TRAINS = all_of(~a.skip_train, a.entry_trains)
TRIAL = 1_000
"""Runs with fewer iterations are trials: their options are often copied from the long run."""
FEW = 10
"""A warm-up of fewer steps is shorter than any in published pretraining."""

RECIPE = any_of(a.train_iters >= TRIAL, a.train_samples >= a.global_batch_size * TRIAL)


def left_on(id: str, message: str, *, off: Handle, on: Handle) -> Constraint:
    """One dropout is turned off, and the other one has its default, which is not 0."""
    return refuse(
        id,
        all_of(TRAINS, off.given, off == 0, ~on.given, on > 0, RECIPE),
        message=message,
        why="published runs that turn one off turn both off. A line may be missing",
        severity=Severity.WARNING,
        at=(off,),
        upstream="megatron/training/arguments.py",
    )


MEGATRON.add(
    refuse(
        "restarts-without-optimizer",
        all_of(
            TRAINS,
            ~a.finetune,
            a.no_load_optim.given,
            a.load.given,
            a.load == a.save,
            a.train_iters >= TRIAL,
        ),
        message="--load and --save are both {load} with --no-load-optim, so every restart loses the optimizer state",
        why="Adam's averages restart at zero, and with --no-load-optim the learning rate may do so as well",
        severity=Severity.WARNING,
        at=(a.no_load_optim, a.load),
        upstream="megatron/training/checkpointing.py",
    ),
    refuse(
        "warmup-of-few-steps",
        all_of(
            TRAINS,
            a.lr_warmup_samples > 0,
            any_of(a.lr_warmup_samples >= TRIAL, a.lr_warmup_samples < a.global_batch_size),
            a.lr_warmup_samples < a.global_batch_size * FEW,
            a.train_samples >= a.global_batch_size * TRIAL,
        ),
        message=(
            "--lr-warmup-samples {lr_warmup_samples} covers fewer than ten batches of {global_batch_size} samples; "
            "the value may be meant in iterations"
        ),
        why="published runs warm up for hundreds of steps. At the full learning rate, the first steps may diverge",
        severity=Severity.WARNING,
        at=(a.lr_warmup_samples, a.global_batch_size),
        upstream=SCHEDULER,
    ),
    refuse(
        "optimizer-not-saved",
        all_of(
            TRAINS,
            ~a.finetune,
            a.no_save_optim.given,
            ~a.no_load_optim.given,
            a.load.given,
            a.load == a.save,
            a.train_iters >= TRIAL,
        ),
        message="--load and --save are both {load} with --no-save-optim, so a restarted run finds no optimizer state and stops",
        why="loading fails with `Unable to load optimizer from checkpoint` unless --no-load-optim is given as well",
        severity=Severity.WARNING,
        at=(a.no_save_optim, a.load),
        upstream="megatron/training/checkpointing.py",
    ),
    left_on(
        "attention-dropout-left-on",
        "--hidden-dropout is 0, but --attention-dropout is not given and defaults to {attention_dropout}",
        off=a.hidden_dropout,
        on=a.attention_dropout,
    ),
    left_on(
        "dropout-left-on",
        "--attention-dropout is 0, but --hidden-dropout is not given and defaults to {hidden_dropout}",
        off=a.attention_dropout,
        on=a.hidden_dropout,
    ),
)
