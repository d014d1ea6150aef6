"""A ramp of the batch size that cannot be followed.

## What it does
Up to Megatron 0.17 checks `--rampup-batch-size START INCREMENT SAMPLES`: three numbers, START and INCREMENT at least 1,
SAMPLES not negative, START not above the global batch size, and the difference of both a multiple of INCREMENT.

## Why is this bad?
The ramp is read while the micro-batch calculator is made; a broken one stops the run at start-up.

## Example
    --global-batch-size 64 --rampup-batch-size 16 10 1000

From 16 to 64 are 48, which is not a multiple of 10. Use instead `--rampup-batch-size 16 16 1000`.

## References
Megatron-LM core_v0.17.0, megatron/core/num_microbatches_calculator.py, RampupBatchsizeNumMicroBatchesCalculator
"""

from collections.abc import Iterator, Sequence

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.core_reading import place_of, read, typed
from preflight.source.finding import Kind

NAME = "rampup_batch_size"


@rule(severity=Severity.ERROR, id="megatron/batch-ramp", kind=Kind.RELEASE, frameworks=("megatron",), reads=(NAME,))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """The first fault of a ramp."""
    given = typed(job, NAME)
    if not given:
        return
    values = read(job, NAME, "global_batch_size")
    if isinstance(values, Unverified):
        yield values
    elif fault := fault_of([str(one) for one in values[0]], values[1]):
        message, site = fault
        if (upstream := place_of(job, site)) is not None:
            yield Finding(message, span=job.place(*given), key=given[0].key, upstream=upstream)


def fault_of(ramp: Sequence[str], batch: int) -> tuple[Message, str] | None:
    """What is wrong with a ramp to a global batch size, and the statement upstream that checks it."""
    if len(ramp) != 3:
        return Message(
            "--rampup-batch-size takes a start, an increment and samples, not {count} values", count=len(ramp)
        ), "e1fbb54eb4"
    try:
        start, increment, samples = map(int, ramp)
    except ValueError:
        return None
    if start < 1:
        return Message("the batch-size ramp starts at {start}; a size must be at least 1", start=start), "c1d7528321"
    if increment < 1:
        return Message(
            "the batch-size ramp grows by {increment}; it must grow by at least 1", increment=increment
        ), "7caffaf551"
    if samples < 0:
        return Message(
            ("the batch-size ramp lasts {samples} samples; it must not be negative"), samples=samples
        ), "0235288196"
    if start > batch:
        return Message(
            "the batch-size ramp starts at {start}, above the global batch of {batch}", start=start, batch=batch
        ), "c58a00fbc1"
    if (batch - start) % increment:
        template = (
            "the ramp from {start} to the global batch of {batch} grows by {gap}, which is not a multiple of "
            "its increment {increment}"
        )
        return Message(template, start=start, batch=batch, gap=batch - start, increment=increment), "a4e846ee5a"
    return None
