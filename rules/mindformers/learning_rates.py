"""Checks for missing learning rates and warm-up lengths."""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Severity, rule
from preflight.dialects.mindformers.registry import registers, trains
from preflight.dialects.mindformers.release_tables import read_at
from preflight.run.version_ranges import matches

_LEARNING_RATE_MISSING_SCHEDULES = frozenset(
    (
        "ConstantWarmUpLR LinearWithWarmUpLR CosineWithWarmUpLR CosineWithRestartsAndWarmUpLR PolynomialWithWarmUpLR "
        "constant_with_warmup linear cosine cosine_with_restarts polynomial"
    ).split()
)
_FILE = "mindformers/core/lr/lr_schedule.py"
_LEARNING_RATE_MISSING_LINE = {"1.0.0": 168, "1.2.0": 243, "1.3.2": 351, "1.5.0": 523}


@rule(id="learning-rate-missing", severity=Severity.ERROR, frameworks=("mindformers",), reads=("lr_schedule",))
def learning_rate_missing(job: Job) -> Iterator[Finding]:
    """A learning-rate schedule has no learning rate.

    ## What it does
    Finds training runs whose `lr_schedule` names a class that needs a `learning_rate`, but sets none or null. With a
    schedule, the rate in `optimizer` is not used, and the template fills in only sections that are missing entirely.

    ## Why is this bad?
    The schedule is built without a rate, and the run crashes when it compiles the first step.

    ## Example
        optimizer: {type: AdamW, learning_rate: 1.0e-5}
        lr_schedule: {type: CosineWithWarmUpLR, warmup_ratio: 0.01}

    Use instead:

        optimizer: {type: AdamW}
        lr_schedule: {type: CosineWithWarmUpLR, learning_rate: 1.0e-5, warmup_ratio: 0.01}

    ## Fix safety
    Unsafe: the fix uses the learning rate of the optimizer if there is one, but another rate may be intended.

    ## References
    MindFormers v1.5.0, mindformers/core/lr/lr_schedule.py:485, :523; v1.7.0, :463, :502, CosineWithWarmUpLR; others alike
    MindFormers v1.7.0, mindformers/trainer/base_trainer.py:662, create_lr_scheduler
    """
    a = job.arguments
    if a.get("kind").raw not in ("legacy", "mcore") or not trains(a) or registers(a, job.documents[0]):
        return
    section, kind = a.given("lr_schedule"), a.given("lr_schedule.type")
    if (
        section is None
        or kind is None
        or not isinstance(kind.raw, str)
        or kind.raw not in _LEARNING_RATE_MISSING_SCHEDULES
        or not isinstance(section.raw, dict)
        or "auto_register" in section.raw
    ):
        return
    typed = a.given("lr_schedule.learning_rate")
    if (typed is not None and typed.raw is not None) or a.get("grouped_lr_schedule").raw is not None:
        return
    rate = a.given("optimizer.learning_rate")
    beside = (
        Message("; optimizer.learning_rate {rate} has no effect with a schedule", rate=rate.raw)
        if rate is not None and rate.known
        else ""
    )
    fix = (
        Fix(f"set lr_schedule.learning_rate to {rate.raw}", (Edit("set", ("lr_schedule", "learning_rate"), rate.raw),))
        if beside and rate is not None
        else None
    )
    said = "lr_schedule has no learning_rate" if typed is None else "lr_schedule.learning_rate is null"
    message = Message("{said}; {kind} needs it{beside}", said=said, kind=kind.raw, beside=beside)
    yield Finding(
        message,
        job.place(typed, kind),
        key=("lr_schedule",),
        fix=fix,
        upstream=f"{_FILE}:{_LEARNING_RATE_MISSING_LINE.get(read_at(job.target.version), 502)}",
    )


_WARMUP_MISSING_SCHEDULES = frozenset(
    (
        "ConstantWarmUpLR LinearWithWarmUpLR CosineWithRestartsAndWarmUpLR PolynomialWithWarmUpLR "
        "ConstantWithCoolDownLR WarmUpStableDecayLR constant_with_warmup linear cosine_with_restarts polynomial"
    ).split()
)
_COSINE = ("CosineWithWarmUpLR", "cosine")
_WARMUP_MISSING_LINE = {"1.0.0": 50, "1.2.0": 40, "1.3.2": 40, "1.5.0": 40}


@rule(id="warmup-missing", severity=Severity.ERROR, frameworks=("mindformers",), reads=("lr_schedule",))
def warmup_missing(job: Job) -> Iterator[Finding]:
    """A learning-rate schedule has no warm-up length.

    ## What it does
    Finds training runs whose `lr_schedule` names a class that needs `warmup_steps`, `warmup_ratio` or `warmup_epochs`,
    but sets none of them. Only `CosineWithWarmUpLR` defaults to 0, since 1.2.

    ## Why is this bad?
    The template fills in only sections that are missing entirely. Every rank builds the schedule after the network, and
    the schedule raises an error.

    ## Example
        lr_schedule: {type: ConstantWarmUpLR, learning_rate: 1.0e-5}

    Use instead:

        lr_schedule: {type: ConstantWarmUpLR, learning_rate: 1.0e-5, warmup_steps: 0}

    ## Fix safety
    Unsafe: a warm-up may be intended.

    ## References
    MindFormers v1.5.0, mindformers/core/lr/lr_schedule.py:40, _get_warmup_steps; v1.7.0 and 2.1.0, :39, _get_lr_steps
    MindFormers v1.0.0, mindformers/core/lr/lr_schedule.py:50, ConstantWarmUpLR; others alike
    """
    a, version = job.arguments, job.target.version
    if a.get("kind").raw not in ("legacy", "mcore") or not trains(a) or a.open or registers(a, job.documents[0]):
        return
    section, kind = a.given("lr_schedule"), a.given("lr_schedule.type")
    if (
        section is None
        or kind is None
        or not isinstance(section.raw, dict)
        or "auto_register" in section.raw
        or a.given("grouped_lr_schedule") is not None
    ):
        return
    asked = (*_WARMUP_MISSING_SCHEDULES, *_COSINE) if matches(version, "<1.2") else _WARMUP_MISSING_SCHEDULES
    if not isinstance(kind.raw, str) or kind.raw not in asked:
        return
    if any(a.given(f"lr_schedule.{name}") is not None for name in ("warmup_steps", "warmup_ratio", "warmup_epochs")):
        return
    fix = Fix("set the warm-up to 0 steps", (Edit("set", ("lr_schedule", "warmup_steps"), 0),))
    message = Message("lr_schedule has neither warmup_steps nor warmup_ratio; {kind} needs one of them", kind=kind.raw)
    yield Finding(
        message,
        job.place(kind),
        key=("lr_schedule",),
        fix=fix,
        upstream=f"{_FILE}:{_WARMUP_MISSING_LINE.get(read_at(version), 39)}",
    )
