"""The learning-rate schedule of a pynative run cannot be built.

## What it does
Compares `lr_scheduler.type` with the schedules that MindFormers and MindSpore register, and finds numbers of the
schedule that YAML 1.1 reads as text: `1e-1` has no dot. The loader keeps such extra keys unread.

## Why is this bad?
The model is built and sharded on every rank, and then the schedule raises.

## Example
    lr_scheduler: {type: ConstantWarmUpLR, learning_rate: 1.0e-5, warmup_ratio: 1e-1}
Use instead:
    lr_scheduler: {type: ConstantWarmUpLR, learning_rate: 1.0e-5, warmup_ratio: 0.1}

## Fix safety
Safe: the same number.

## References
MindFormers 2.1.0, mindformers/core/lr/lr_schedule.py, build_lr.py:64; mindformers/tools/register/register.py:287, :398
"""

from collections.abc import Iterator
from difflib import get_close_matches

from preflight import Finding, Fix, Job, Message, Safety, Severity, rule

SCHEDULES = (
    *(
        "ConstantWarmUpLR",
        "ConstantWithCoolDownLR",
        "LinearWithWarmUpLR",
        "CosineWithWarmUpLR",
        "CosineWithRestartsAndWarmUpLR",
        "PolynomialWithWarmUpLR",
    ),
    *("LearningRateWiseLayer", "WarmUpStableDecayLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts"),
    *(
        "constant_with_warmup",
        "linear",
        "cosine",
        "cosine_with_restarts",
        "polynomial",
        "cosine_annealing",
        "cosine_annealing_warm_restarts",
    ),
    *(
        "CosineDecayLR",
        "ExponentialDecayLR",
        "InverseDecayLR",
        "NaturalExpDecayLR",
        "PolynomialDecayLR",
        "WarmUpLR",
        "LearningRateSchedule",
    ),
)
_NUMBERS = (
    "warmup_ratio",
    "warmup_lr_init",
    "lr_end",
    "warmup_steps",
    "decay_steps",
    "decay_ratio",
    "power",
    "num_cycles",
)


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    a = job.arguments
    if a.get("run_mode").raw == "predict":
        return
    kind = a.given("lr_scheduler.type")
    if (
        kind is not None
        and isinstance(kind.raw, str)
        and kind.raw not in SCHEDULES
        and a.given("lr_scheduler.auto_register") is None
    ):
        near = get_close_matches(kind.raw, SCHEDULES, 1, 0.5)
        fix = Fix(f"write {near[0]}", kind.becomes(near[0])) if near else None
        hint = Message("; did you mean {near}?", near=near[0]) if near else ""
        message = Message("there is no schedule {kind}{hint}", kind=kind.raw, hint=hint)
        yield Finding(
            message, job.place(kind), key=kind.key, fix=fix, upstream="mindformers/tools/register/register.py:287"
        )
    for name in _NUMBERS:
        value = a.given(f"lr_scheduler.{name}")
        if value is None or not isinstance(value.raw, str):
            continue
        try:
            number = float(value.raw)
        except ValueError:
            continue
        fix = Fix(f"write {number!r}", value.becomes(number), Safety.SAFE)
        message = Message(
            "{name} {value} is a text in YAML 1.1, and the schedule takes only a number; write it with a dot",
            name=name,
            value=value.raw,
        )
        yield Finding(
            message, job.place(value), key=value.key, fix=fix, upstream="mindformers/tools/register/register.py:398"
        )
