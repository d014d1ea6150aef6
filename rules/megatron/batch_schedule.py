"""A batch-size schedule that cannot be followed.

## What it does
Reads `--step-batch-size-schedule` ("THRESHOLD:SIZE THRESHOLD:SIZE …", with K, M, B or T for thousands to trillions) and
checks that it starts at 0, that its thresholds grow, and that its sizes are positive.

## Why is this bad?
The schedule is read while the micro-batch calculator is made; a broken one stops the run at start-up. Thresholds are
tokens and are counted in whole sequences, so two that differ by less than a sequence are the same.

## Example
    --step-batch-size-schedule "1B:512 10B:1024"

Use instead "0:512 10B:1024".

## References
Megatron-LM d98e8a6, megatron/core/num_microbatches_calculator.py, StepBatchsizeNumMicroBatchesCalculator
"""

from collections.abc import Iterator
from itertools import pairwise

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.core_reading import place_of, read, typed
from preflight.source.finding import Kind
from preflight.source.record import NamedTuple

NAME = "step_batch_size_schedule"
SUFFIXES = {"T": 10**12, "B": 10**9, "M": 10**6, "K": 10**3}


@rule(
    severity=Severity.ERROR,
    id="megatron/batch-schedule",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=(NAME,),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """The first fault of a schedule."""
    given = typed(job, NAME)
    if not given:
        return
    values = read(job, NAME, "seq_length")
    if isinstance(values, Unverified):
        yield values
    elif fault := fault_of(str(values[0]), values[1]):
        message, site = fault
        yield Finding(message, span=job.place(*given), key=given[0].key, upstream=place_of(job, site))


class Step(NamedTuple):
    """From which sample on a batch size holds."""

    start: int
    size: int
    entry: str


def fault_of(schedule: str, sequence: int | None) -> tuple[str, str] | None:
    """What is wrong with a schedule, and the statement upstream that checks it."""
    for entry in _entries(schedule):
        threshold, colon, size = entry.partition(":")
        if not colon:
            return Message(
                "the batch-size schedule has {entry!r}; each entry must be THRESHOLD:SIZE", entry=entry
            ), "595541fa82"
        if number(threshold) is None or number(size) is None:
            return Message(
                ("the batch-size schedule has {entry!r}; both parts must be numbers"), entry=entry
            ), "595541fa82"
    steps = steps_of(schedule, sequence)
    if not steps:
        return "the batch-size schedule is empty", "cbe985721c"
    if steps[0].start != 0:
        return Message(
            "the batch-size schedule begins at {entry!r}; its first threshold must be 0", entry=steps[0].entry
        ), "c2a31348f0"
    for before, after in pairwise(steps):
        if after.start <= before.start:
            return Message(
                "{before!r} and {after!r} of the batch-size schedule start at the same sample, {start}",
                before=before.entry,
                after=after.entry,
                start=after.start,
            ), "263ff44265"
    bad = next((step.entry for step in steps if step.size <= 0), None)
    return (
        (Message("the batch-size schedule has {bad!r}; a size must be at least 1", bad=bad), "1e1b5fd27f")
        if bad
        else None
    )


def steps_of(schedule: str, sequence: int | None) -> list[Step]:
    """The steps in order; entries that are not two numbers are left out."""
    pairs = ((entry, [number(part) for part in entry.split(":", 1)]) for entry in _entries(schedule))
    steps = [
        Step(pair[0] // (sequence or 1), pair[1], entry)
        for entry, pair in pairs
        if len(pair) == 2 and pair[0] is not None and pair[1] is not None
    ]
    return sorted(steps, key=lambda step: step.start)


def _entries(schedule: str) -> list[str]:
    return schedule.replace(",", " ").split()


def number(text: str) -> int | None:
    """A whole number with an optional suffix."""
    text = text.strip().upper()
    factor = SUFFIXES.get(text[-1:], 1)
    try:
        return int(float(text[:-1] if factor > 1 else text) * factor)
    except (ValueError, OverflowError):
        return None
