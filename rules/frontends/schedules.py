"""Checks of Megatron's learning-rate schedule for front ends that create the schedule themselves."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.lint.constraint import Constraint, ConstraintSet, refuse
from preflight.lint.expressions import Expression, Handles, all_of, any_of

LATE = "the run fails when the schedule is created, after the models are built"
CORE = "megatron/core/optimizer_param_scheduler.py"
VERL, NEMO_RL = ConstraintSet("verl", why=LATE), ConstraintSet("nemo-rl", why=LATE)
a = Handles(megatron_names() | names("verl") | names("nemo-rl"))


def of_schedule(warmup: Expression, trains: Expression, uncapped: str = "") -> tuple[Constraint, ...]:
    """The checks of a schedule. warmup: the number of warm-up steps; trains: what must be true of the run. uncapped: the
    releases that do not shorten a warm-up that is too long, if not all."""
    return (
        refuse(
            "minimum-above-rate",
            all_of(trains, a.lr.is_set, a.min_lr.is_set, a.min_lr > a.lr),
            message="the minimum learning rate {min_lr} is above the learning rate {lr}",
            upstream=f"{CORE}:151",
            at=(a.min_lr, a.lr),
        ),
        refuse(
            "minimum-below-zero",
            all_of(trains, a.min_lr < 0),
            message="the minimum learning rate {min_lr} is below 0",
            upstream=f"{CORE}:150",
            at=(a.min_lr,),
        ),
        refuse(
            "warm-up-start-above-rate",
            all_of(trains, a.lr.is_set, a.lr_warmup_init.is_set, a.lr_warmup_init > a.lr),
            message="the warm-up starts at {lr_warmup_init}, above the learning rate {lr}",
            upstream=f"{CORE}:152",
            at=(a.lr_warmup_init, a.lr),
        ),
        refuse(
            "warm-up-over-decay",
            all_of(trains, a.lr_decay_iters.is_set, warmup.is_set, warmup > 0, warmup >= a.lr_decay_iters),
            message="the warm-up of {warmup} steps must be shorter than the decay of {lr_decay_iters}",
            upstream=f"{CORE}:160",
            versions=uncapped,
            shows={"warmup": warmup},
            at=(warmup, a.lr_decay_iters),
        ),
        refuse(
            "decay-without-length",
            all_of(trains, a.lr_decay_style == "WSD", a.lr_wsd_decay_iters.is_none),
            message="the decay style WSD needs the number of decay steps, which is not given",
            upstream=f"{CORE}:164",
            at=(a.lr_decay_style,),
        ),
    )


TUNES = a.entry == "verl.trainer.sft_trainer"
VERL.add(*of_schedule(a.optim_warmup_steps, any_of(a.nnodes.is_set, TUNES)))
NEMO_RL.add(*of_schedule(a.lr_warmup_iters, a.megatron_enabled, "<0.6")[:-1])
"""Its configs cannot set a WSD decay length. From 0.6 on its Megatron-Bridge (95e5f38f,
src/megatron/bridge/training/config.py:1375) caps the warm-up one step before the end of the decay."""
