"""Training lengths and restart settings that pass every check but do not train what was intended."""

from preflight.lint.constraint import ConstraintSet, refuse
from preflight.rules.megatron.option_names import SCHEDULER, a, all_of, any_of
from preflight.source.finding import Severity

MEGATRON = ConstraintSet("megatron", why="no check covers this value, and the run is not the one that was intended")
TRAINS = all_of(~a.skip_train, a.entry_trains)
TRIAL = 1_000
"""Runs with fewer iterations are trials: their options are often copied from the long run."""
MANY = 10**15
"""Tokens: more than 20 times as many as those of the longest published pretraining, 3.6e13."""
DECAYS = ~a.lr_decay_style.is_in("constant", "WSD", "inverse-square-root")
RECIPE = any_of(a.train_iters >= TRIAL, a.train_samples >= a.global_batch_size * TRIAL)

MEGATRON.add(
    refuse(
        "samples-of-years",
        all_of(TRAINS, a.train_samples.given, a.train_samples * a.seq_length >= MANY),
        message=(
            "--train-samples {train_samples} × {seq_length} tokens per sample = {tokens} tokens, which no run "
            "reaches; --train-samples counts sequences, not tokens"
        ),
        why="a schedule of this length keeps the learning rate at its maximum, and the run never ends by itself",
        shows={"tokens": a.train_samples * a.seq_length},
        severity=Severity.WARNING,
        at=(a.train_samples, a.seq_length),
        upstream=SCHEDULER,
    ),
    refuse(
        "minimum-near-rate",
        all_of(TRAINS, DECAYS, a.min_lr.given, a.lr > 0, a.min_lr < a.lr, a.min_lr * 1.25 > a.lr, RECIPE),
        message=(
            "--min-lr {min_lr} is almost equal to --lr {lr}, so --lr-decay-style {lr_decay_style} hardly lowers the "
            "learning rate"
        ),
        why=(
            "published recipes decay to a tenth of the learning rate or less, so the exponent of one of the two "
            "values may be wrong"
        ),
        severity=Severity.WARNING,
        at=(a.min_lr, a.lr),
        upstream=SCHEDULER,
    ),
    refuse(
        "fine-tuning-into-loaded-folder",
        all_of(TRAINS, a.finetune, a.load.given, a.save.given, a.load == a.save, a.train_iters >= TRIAL),
        message="--load and --save are both {load} with --finetune, so every restart begins at iteration 0 with the "
        "weights of the last checkpoint",
        why="a restarted run trains on the same data again, and its checkpoints are written among those that it started from",
        severity=Severity.WARNING,
        at=(a.save, a.load),
        upstream="megatron/training/checkpointing.py",
    ),
)
