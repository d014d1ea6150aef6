"""A learning-rate schedule has no warmup length.

## What it does
Finds an `lr_schedule` of a training run whose class must be given `warmup_steps`, `warmup_ratio` or `warmup_epochs`,
and is given none of them. `CosineWithWarmUpLR` alone takes 0 for it, since 1.2.

## Why is this bad?
The template fills only a section that is left out as a whole. The schedule is built after the network, on every rank,
and refuses.

## Example
    lr_schedule: {type: ConstantWarmUpLR, learning_rate: 1.0e-5}

Use instead:

    lr_schedule: {type: ConstantWarmUpLR, learning_rate: 1.0e-5, warmup_steps: 0}

## Fix safety
Unsafe: a warm-up may have been meant.

## References
MindFormers v1.5.0, mindformers/core/lr/lr_schedule.py:40, _get_warmup_steps; v1.7.0 and 2.1.0, :39, _get_lr_steps
MindFormers v1.0.0, mindformers/core/lr/lr_schedule.py:50, ConstantWarmUpLR; others alike
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Severity, rule
from preflight.dialects.mindformers.registry import registers, trains
from preflight.dialects.mindformers.release_tables import read_at
from preflight.run.versions import matches

_SCHEDULES = frozenset(
    (
        "ConstantWarmUpLR LinearWithWarmUpLR CosineWithRestartsAndWarmUpLR PolynomialWithWarmUpLR "
        "ConstantWithCoolDownLR WarmUpStableDecayLR constant_with_warmup linear cosine_with_restarts polynomial"
    ).split()
)
_COSINE = ("CosineWithWarmUpLR", "cosine")
_FILE = "mindformers/core/lr/lr_schedule.py"
_LINE = {"1.0.0": 50, "1.2.0": 40, "1.3.2": 40, "1.5.0": 40}


@rule(severity=Severity.ERROR, frameworks=("mindformers",), reads=("lr_schedule",))
def check(job: Job) -> Iterator[Finding]:
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
    asked = (*_SCHEDULES, *_COSINE) if matches(version, "<1.2") else _SCHEDULES
    if not isinstance(kind.raw, str) or kind.raw not in asked:
        return
    if any(a.given(f"lr_schedule.{name}") is not None for name in ("warmup_steps", "warmup_ratio", "warmup_epochs")):
        return
    fix = Fix("warm up over no steps", (Edit("set", ("lr_schedule", "warmup_steps"), 0),))
    message = Message("lr_schedule has neither warmup_steps nor warmup_ratio; {kind} needs one of them", kind=kind.raw)
    yield Finding(
        message, job.place(kind), key=("lr_schedule",), fix=fix, upstream=f"{_FILE}:{_LINE.get(read_at(version), 39)}"
    )
