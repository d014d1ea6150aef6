"""The ramp of the global batch size does not come out even.

## What it does
Checks `training.rampup_batch_size` [start, increment, samples]: three integers, start and increment positive, samples
not negative; the ramp must reach `global_batch_size` in whole increments, and every size on the way must be a multiple
of data parallel x `local_batch_size`.

## Why is this bad?
The trainer refuses the ramp at start.

## Example
With 8 data-parallel ranks:
    training: {local_batch_size: 1, global_batch_size: 64, rampup_batch_size: [8, 6, 100]}
Use instead:
    training: {local_batch_size: 1, global_batch_size: 64, rampup_batch_size: [8, 8, 100]}

## References
MindFormers 2.1.0, mindformers/pynative/config/config.py:386-418 and pynative/trainer/dynamic_batch.py:97-153
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, known, rule

_CONFIG = "mindformers/pynative/config/config.py"
_RAMP = "mindformers/pynative/trainer/dynamic_batch.py"


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    ramp = job.arguments.given("training.rampup_batch_size")
    if ramp is None or not isinstance(ramp.raw, list):
        return  # a wrong type is another rule's
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
            ("rampup_batch_size holds {wrong!r}; all three must be integers"), wrong=wrong[0]
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
    "the batch ramp grows from {start} to {total} by {increment}: the difference is not a multiple, {rest} remain"
)
_FIRST = "the batch ramp starts at {start}, not a multiple of data parallel {data} x local batch {local} = {unit}"
_LATER = "the batch ramp passes {bad}, not a multiple of data parallel {data} x local batch {local} = {unit}"


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
