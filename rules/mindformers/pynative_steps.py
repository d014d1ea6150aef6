"""Checks of the batches, schedules and outputs of pynative runs."""

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import PurePosixPath

from preflight import Finding, Fix, Job, Message, Safety, Severity, known, rule

_CONFIG = "mindformers/pynative/config/config.py"
_RAMP = "mindformers/pynative/trainer/dynamic_batch.py"


@rule(id="pynative-batch-ramp", severity=Severity.ERROR, frameworks=("pynative",))
def pynative_batch_ramp(job: Job) -> Iterator[Finding]:
    """The ramp-up of the global batch size is invalid or does not end in whole increments.

    ## What it does
    Checks that `training.rampup_batch_size` is [start, increment, samples], three integers of which start and increment
    are positive and samples is not negative. The ramp-up must reach `global_batch_size` in whole increments, and every
    size on the way must be a multiple of the data-parallel size times `local_batch_size`.

    ## Why is this bad?
    The trainer rejects the ramp-up at startup.

    ## Example
    With 8 data-parallel ranks:
        training: {local_batch_size: 1, global_batch_size: 64, rampup_batch_size: [8, 6, 100]}
    Use instead:
        training: {local_batch_size: 1, global_batch_size: 64, rampup_batch_size: [8, 8, 100]}

    ## References
    MindFormers 2.1.0, mindformers/pynative/config/config.py:386-418 and pynative/trainer/dynamic_batch.py:97-153
    """
    ramp = job.arguments.given("training.rampup_batch_size")
    if ramp is None or not isinstance(ramp.raw, list):
        return  # another rule reports a wrong type
    fault = _form(ramp.raw) or _arithmetic(job, ramp.raw)
    if fault is not None:
        message, upstream = fault
        total = job.arguments.given("training.global_batch_size")
        yield Finding(message, job.place(ramp), total.related if total else (), key=ramp.key, upstream=upstream)


def _form(ramp: list[object]) -> tuple[str, str] | None:
    if len(ramp) != 3:
        return Message(
            "rampup_batch_size has {count} entries; it must be [start, increment, samples]", count=len(ramp)
        ), f"{_CONFIG}:394"
    wrong = [n for n in ramp if not isinstance(n, int) or isinstance(n, bool)]
    if wrong:
        return Message(
            ("rampup_batch_size contains {wrong!r}; all three must be integers"), wrong=wrong[0]
        ), f"{_CONFIG}:400"
    start, increment, samples = (int(str(n)) for n in ramp)
    if start <= 0:
        return Message("the batch ramp starts at {start}; it must be positive", start=start), f"{_CONFIG}:405"
    if increment <= 0:
        message = Message("the batch ramp grows by {increment}; it must be positive", increment=increment)
        return message, f"{_CONFIG}:410"
    message = Message("the batch ramp lasts {samples} samples; it must not be negative", samples=samples)
    return (message, f"{_CONFIG}:415") if samples < 0 else None


_ABOVE = "the batch ramp starts at {start}, above the global batch {total}"
_LEFT_OVER = (
    "the batch ramp grows from {start} to {total} by {increment}, but the difference is not a multiple of the "
    "increment: {rest} remain"
)
_FIRST = (
    "the batch ramp starts at {start}, which is not a multiple of {unit} (data-parallel size {data} × local batch "
    "size {local})"
)
_LATER = (
    "the batch ramp passes {bad}, which is not a multiple of {unit} (data-parallel size {data} × local batch size "
    "{local})"
)


def _arithmetic(job: Job, ramp: list[int]) -> tuple[str, str] | None:
    start, increment, _ = ramp
    values = known(
        job.arguments.get("training.global_batch_size"),
        job.arguments.get("training.local_batch_size"),
        job.plan.layout.data,
    )
    if values is None or not all(isinstance(n, int) and n > 0 for n in values):
        return None
    total, local, data = values
    unit = local * data
    if total % unit:
        return None
    if total < start:
        return Message(_ABOVE, start=start, total=total), f"{_RAMP}:125"
    if rest := (total - start) % increment:
        message = Message(_LEFT_OVER, start=start, total=total, increment=increment, rest=rest)
        return message, f"{_RAMP}:131"
    if start % unit:
        return Message(_FIRST, start=start, data=data, local=local, unit=unit), f"{_RAMP}:136"
    steps = range(min(unit, (total - start) // increment))
    bad = next((start + k * increment for k in steps if (start + k * increment) % unit), None)
    if bad is not None:
        return Message(_LATER, bad=bad, data=data, local=local, unit=unit), f"{_RAMP}:149"
    return None


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


@rule(id="pynative-schedule", severity=Severity.ERROR, frameworks=("pynative",))
def pynative_schedule(job: Job) -> Iterator[Finding]:
    """The learning-rate schedule of a pynative run cannot be built.

    ## What it does
    Compares `lr_scheduler.type` with the schedules that MindFormers and MindSpore register, and finds numbers of the
    schedule that YAML 1.1 reads as strings, such as `1e-1`, which has no dot. The loader keeps such extra keys without
    checking them.

    ## Why is this bad?
    The model is built and sharded on every rank, and then the schedule raises an error.

    ## Example
        lr_scheduler: {type: ConstantWarmUpLR, learning_rate: 1.0e-5, warmup_ratio: 1e-1}
    Use instead:
        lr_scheduler: {type: ConstantWarmUpLR, learning_rate: 1.0e-5, warmup_ratio: 0.1}

    ## Fix safety
    Safe: the value of the number stays the same.

    ## References
    MindFormers 2.1.0, mindformers/core/lr/lr_schedule.py, build_lr.py:64; mindformers/tools/register/register.py:287, :398
    """
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
            "{name} {value} is a string in YAML 1.1, but the schedule accepts only a number; write it with a dot",
            name=name,
            value=value.raw,
        )
        yield Finding(
            message, job.place(value), key=value.key, fix=fix, upstream="mindformers/tools/register/register.py:398"
        )


FORMATS = ("", ".jsonl", ".json", ".txt")


@rule(id="pynative-output-format", severity=Severity.ERROR, frameworks=("pynative",))
def pynative_output_format(job: Job) -> Iterator[Finding]:
    """The output file for predictions has an unsupported extension.

    ## What it does
    Checks that `inference.output` ends in .jsonl, .json or .txt, or has no extension.

    ## Why is this bad?
    Loading the file fails, regardless of `run_mode`.

    ## Example
        inference: {output: answers.csv}
    Use instead:
        inference: {output: answers.jsonl}

    ## Fix safety
    Safe: only the name of the output file changes.

    ## References
    MindFormers 2.1.0, mindformers/pynative/config/config.py:1015, InferenceConfig
    """
    value = job.arguments.given("inference.output")
    if value is None or not isinstance(value.raw, str):
        return
    path = PurePosixPath(value.raw)
    if path.suffix.lower() not in FORMATS:
        fix = Fix("write JSON lines", value.becomes(str(path.with_suffix(".jsonl"))), Safety.SAFE)
        message = Message(
            ("inference.output ends with {suffix}; it must end with .jsonl, .json or .txt, or have no ending"),
            suffix=path.suffix,
        )
        yield Finding(
            message, job.place(value), key=value.key, fix=fix, upstream="mindformers/pynative/config/config.py:1015"
        )
