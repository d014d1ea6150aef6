"""Checks of batch sizes that grow during training."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.rules.megatron.option_names import place_of, read, typed
from preflight.source.finding import Kind
from preflight.source.record import NamedTuple

RAMP_NAME = "rampup_batch_size"


@rule(
    severity=Severity.ERROR, id="megatron/batch-ramp", kind=Kind.RELEASE, frameworks=("megatron",), reads=(RAMP_NAME,)
)
def batch_ramp(job: Job) -> Iterator[Finding | Unverified]:
    """The batch-size ramp-up is invalid.

    ## What it does
    For Megatron up to 0.17, checks that `--rampup-batch-size START INCREMENT SAMPLES` has three numbers, that START and
    INCREMENT are at least 1 and SAMPLES is not negative, and that START is at most the global batch size and differs
    from it by a multiple of INCREMENT.

    ## Why is this bad?
    Megatron reads the ramp-up when it creates the micro-batch calculator. An invalid ramp-up stops the run at startup.

    ## Example
        --global-batch-size 64 --rampup-batch-size 16 10 1000

    The difference between 16 and 64 is 48, which is not a multiple of 10. Use instead:
    `--rampup-batch-size 16 16 1000`.

    ## References
    Megatron-LM core_v0.17.0, megatron/core/num_microbatches_calculator.py, RampupBatchsizeNumMicroBatchesCalculator
    """
    given = typed(job, RAMP_NAME)
    if not given:
        return
    values = read(job, RAMP_NAME, "global_batch_size")
    if isinstance(values, Unverified):
        yield values
    elif fault := ramp_fault_of([str(one) for one in values[0]], values[1]):
        message, site = fault
        if (upstream := place_of(job, site)) is not None:
            yield Finding(message, span=job.place(*given), key=given[0].key, upstream=upstream)


def ramp_fault_of(ramp: Sequence[str], batch: int) -> tuple[Message, str] | None:
    """The fault in a ramp-up to a global batch size, and the upstream statement that checks it."""
    if len(ramp) != 3:
        return Message(
            "--rampup-batch-size takes three values (start, increment and samples), not {count}", count=len(ramp)
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


SCHEDULE_NAME = "step_batch_size_schedule"
SUFFIXES = {"T": 10**12, "B": 10**9, "M": 10**6, "K": 10**3}


@rule(
    severity=Severity.ERROR,
    id="megatron/batch-schedule",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=(SCHEDULE_NAME,),
)
def batch_schedule(job: Job) -> Iterator[Finding | Unverified]:
    """The batch-size schedule is invalid.

    ## What it does
    Reads `--step-batch-size-schedule` ("THRESHOLD:SIZE THRESHOLD:SIZE …", with K, M, B or T for thousands to trillions)
    and checks that the schedule starts at 0, that its thresholds increase, and that its sizes are positive.

    ## Why is this bad?
    Megatron reads the schedule when it creates the micro-batch calculator. An invalid schedule stops the run at
    startup. Thresholds are numbers of tokens and are converted to whole sequences, so two thresholds that differ by
    less than one sequence are treated as equal.

    ## Example
        --step-batch-size-schedule "1B:512 10B:1024"

    Use instead: "0:512 10B:1024".

    ## References
    Megatron-LM d98e8a6, megatron/core/num_microbatches_calculator.py, StepBatchsizeNumMicroBatchesCalculator
    """
    given = typed(job, SCHEDULE_NAME)
    if not given:
        return
    values = read(job, SCHEDULE_NAME, "seq_length")
    if isinstance(values, Unverified):
        yield values
    elif fault := schedule_fault_of(str(values[0]), values[1]):
        message, site = fault
        yield Finding(message, span=job.place(*given), key=given[0].key, upstream=place_of(job, site))


class Step(NamedTuple):
    """The sample from which a batch size applies."""

    start: int
    size: int
    entry: str


def schedule_fault_of(schedule: str, sequence: int | None) -> tuple[str, str] | None:
    """The fault in a schedule, and the upstream statement that checks it."""
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
    """The steps in order, without entries that are not two numbers."""
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
    """An integer with an optional suffix."""
    text = text.strip().upper()
    factor = SUFFIXES.get(text[-1:], 1)
    try:
        return int(float(text[:-1] if factor > 1 else text) * factor)
    except (ValueError, OverflowError):
        return None


DIVIDES, GROWS = "d1f958c01e", "c6a5bc448e"
"""The upstream statements, under the names used in the evidence."""

_PLAIN = "micro-batch size {micro} × data-parallel size {data} = {unit}"
_SHARDED = "micro-batch size {micro} × data-parallel size {data} × weight shards {held} = {unit}"


@rule(
    severity=Severity.ERROR,
    sometimes=(Severity.WARNING,),
    id="megatron/batch-schedule-step",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    after=("device-count",),
    reads=(SCHEDULE_NAME,),
)
def batch_schedule_step(job: Job) -> Iterator[Finding | Unverified]:
    """A step of the batch-size schedule has a batch size that the run cannot train with.

    ## What it does
    Reads `--step-batch-size-schedule` and checks that each of its sizes is a multiple of the micro-batch size × the
    data-parallel size (and of the weight shards beyond tensor parallelism), and that no step has fewer micro-batches
    than the step before it.

    ## Why is this bad?
    Megatron checks a size only when its step begins, so the run trains until then and crashes. If the first size is not
    divisible, the run crashes in the first iteration. The finding is a warning if the run may not reach the step, or if
    a loaded checkpoint may already be past it. A schedule that was written for fewer devices starts with such sizes.

    ## Example
    On 16 data-parallel ranks:

        --micro-batch-size 2 --step-batch-size-schedule "0:48 10B:1024"

    Use instead: "0:64 10B:1024".

    ## References
    Megatron-LM d98e8a6, megatron/core/num_microbatches_calculator.py:581, StepBatchsizeNumMicroBatchesCalculator.update,
    which
    megatron/training/training.py:4627 calls in each iteration, and megatron/training/training.py:4612
    """
    given = typed(job, SCHEDULE_NAME)
    if job.arguments.get("perform_rl_step").raw is True:
        return
    values = read(job, SCHEDULE_NAME, "seq_length", "skip_train", "perform_rl_step")
    factors = (job.plan.batch.micro, job.plan.layout.data, job.arguments.get("gtp_weight_remat_size"))
    numbers = known(*factors)
    if isinstance(values, Unverified) or numbers is None:
        yield (
            values
            if isinstance(values, Unverified)
            else Unverified(next((v.because for v in factors if not v.known), ""))
        )
        return
    schedule, sequence, skipped, _ = values
    unit = numbers[0] * numbers[1] * numbers[2]
    if skipped or unit < 1 or schedule_fault_of(str(schedule), sequence):
        return
    steps = steps_of(str(schedule), sequence)
    if (found := _fault(steps, unit)) is not None:
        index, why, site = found
        micro, data, held = numbers
        size = Message(_SHARDED if held > 1 else _PLAIN, micro=micro, data=data, held=held, unit=unit)
        severity = None if _reaches(job, steps, index) else Severity.WARNING
        step, before = steps[index], steps[index - 1].size
        message = Message(why, entry=step.entry, size=step.size, before=before, unit=size)
        yield Finding(message, job.place(*given), key=given[0].key, upstream=place_of(job, site), severity=severity)


def _fault(steps: list[Step], unit: int) -> tuple[int, str, str] | None:
    """The step at which a run crashes, the template of the reason, and the upstream statement."""
    for index, step in enumerate(steps):
        if step.size % unit:
            return index, "the batch-size schedule has {entry!r}, and {size} is not a multiple of {unit}", DIVIDES
        if index and step.size < steps[index - 1].size:
            return (
                index,
                (
                    "the batch-size schedule decreases from {before} to {size}, but the number of micro-batches must "
                    "not decrease"
                ),
                GROWS,
            )
    return None


def _reaches(job: Job, steps: list[Step], index: int) -> bool:
    """Whether the run is certain to get to a step: it starts from scratch and lasts long enough."""
    values = read(job, "load", "exit_interval", "exit_duration_in_mins", "train_samples", "train_iters")
    if isinstance(values, Unverified) or any(value is not None for value in values[:3]):
        return False
    samples, iterations = values[3:]
    if samples is not None:
        return bool(samples > steps[index].start)
    done, turns = 0, 0
    for one, other in pairwise(steps[: index + 1]):
        more = max(0, -(-(other.start - done) // one.size))
        done, turns = done + more * one.size, turns + more
    return iterations is not None and turns < iterations
