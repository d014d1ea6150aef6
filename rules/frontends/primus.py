"""Checks of Megatron's learning-rate schedule, which Primus creates unchanged in every run."""

from preflight.dialects.megatron import megatron_names
from preflight.lint.constraint import ConstraintSet, refuse
from preflight.lint.expressions import Handles, all_of

LATE = "the run fails when the schedule is created, after the model is built"
CORE = "third_party/Megatron-LM/megatron/core/optimizer_param_scheduler.py"
PRIMUS = ConstraintSet("primus", why=LATE)
a = Handles(megatron_names())

PRIMUS.add(
    refuse(
        "minimum-above-rate",
        all_of(~a.skip_train, a.lr.is_set, a.min_lr.is_set, a.min_lr > a.lr),
        message="min_lr {min_lr} is above lr {lr}",
        upstream=f"{CORE}:148",
        at=(a.min_lr, a.lr),
    ),
    refuse(
        "warm-up-over-decay",
        all_of(~a.skip_train, a.lr_decay_steps > 0, a.lr_warmup_steps >= a.lr_decay_steps),
        message="the warm-up of {lr_warmup_steps} samples must be shorter than the decay of {lr_decay_steps}",
        upstream=f"{CORE}:157",
        at=(a.lr_warmup_iters, a.lr_warmup_fraction, a.lr_decay_iters, a.train_iters),
    ),
)
