"""A step of a batch-size schedule cannot be trained with.

## What it does
Reads `--step-batch-size-schedule` and checks that each of its sizes is a multiple of `micro batch * data parallel` (and
of the weight shards beyond tensor parallelism), and that no step has fewer micro-batches than the one before.

## Why is this bad?
Megatron looks at a size when its turn comes: the run trains until then, and dies. A first size that does not divide
ends it in the first iteration. Where it is not certain that the run gets there, or a loaded checkpoint may have the
step behind it (a schedule written for fewer devices begins with such sizes), it is a warning.

## Example
On 16 data-parallel ranks:

    --micro-batch-size 2 --step-batch-size-schedule "0:48 10B:1024"

Use instead "0:64 10B:1024".

## References
Megatron-LM d98e8a6, megatron/core/num_microbatches_calculator.py:581, StepBatchsizeNumMicroBatchesCalculator.update,
which
megatron/training/training.py:4627 calls in each iteration, and megatron/training/training.py:4612
"""

from collections.abc import Iterator
from itertools import pairwise

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.rules.megatron.batch_schedule import NAME, Step, fault_of, steps_of
from preflight.rules.megatron.core_reading import place_of, read, typed
from preflight.source.finding import Kind

DIVIDES, GROWS = "d1f958c01e", "c6a5bc448e"
"""The statements of upstream, as the evidence names them."""

_PLAIN = "micro batch {micro} x data parallel {data} = {unit}"
_SHARDED = "micro batch {micro} x data parallel {data} x weight shards {held} = {unit}"


@rule(
    severity=Severity.ERROR,
    id="megatron/batch-schedule-step",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    after=("device-count",),
    reads=(NAME,),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """The first size that does not divide, or that falls."""
    given = typed(job, NAME)
    if job.arguments.get("perform_rl_step").raw is True:
        return
    values = read(job, NAME, "seq_length", "skip_train", "perform_rl_step")
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
    if skipped or unit < 1 or fault_of(str(schedule), sequence):
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
    """The step at which a run dies, the template of why, and the statement upstream."""
    for index, step in enumerate(steps):
        if step.size % unit:
            return index, "the batch-size schedule has {entry!r}, and {size} is not a multiple of {unit}", DIVIDES
        if index and step.size < steps[index - 1].size:
            return (
                index,
                "the batch-size schedule goes from {before} down to {size}; the number of micro-batches must not fall",
                GROWS,
            )
    return None


def _reaches(job: Job, steps: list[Step], index: int) -> bool:
    """Whether the run is certain to come to a step: it starts from nothing and lasts long enough."""
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
