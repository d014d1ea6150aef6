"""The run will not fit in device memory, or may not.

## What it does
Estimates the memory of every pipeline stage at the second step, when optimizer states exist: weights, gradients,
optimizer states, activations of the micro-batches in flight, loss buffers, and the additional memory of the runtime. It
is an error when even the low bound exceeds the memory of the device, and a warning when the likely need does, or when
the low bound rests on the published size of a model. What is not known is counted as a range; where that is wider than
a factor of two, its high end is not a warning.

## Why is this bad?
The job dies at the first or second step, or after hours on the first long sample, on every device it queued for.

## Example
A 7B model with plain Adam and no sharding keeps 18 bytes a parameter: 121 GB before the first activation.

    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --bf16

Use instead more sharding (`--use-distributed-optimizer`, tensor or pipeline parallel), recomputation, or a smaller
micro batch; `preflight layouts` finds layouts that fit.

## Fix safety
No fix by itself; other layouts are offered by `preflight layouts`.

## References
Megatron-LM d98e8a6, megatron/training/theoretical_memory_usage.py; terms as printed by `preflight memory`
"""

from collections.abc import Iterable, Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.source.finding import Kind
from preflight.source.word import Needed, Reason

GIB = 2**30
ENGINE = "rollout engine"


@rule(severity=Severity.ERROR, kind=Kind.MEMORY)
def check(job: Job) -> Iterator[Finding | Unverified]:
    if (budget := job.cluster.budget) is None:
        yield Unverified(Reason("the device is not known", Needed.DEVICE))
        return
    estimate = job.memory
    worst = estimate.worst
    if worst is None or estimate.verdict == "unknown":
        yield Unverified(estimate.unknown[0])
        return
    if estimate.verdict == "fits":
        return
    sure = estimate.verdict == "does-not-fit"
    if estimate.supposed or (estimate.wide and estimate.taken and not sure):
        yield Unverified((*estimate.assumed, *estimate.taken)[0])
        return
    if sure:
        worst = max(estimate.stages, key=lambda stage: stage.low)
    counted = (term for term in worst.terms if term.kind != "device" or term.name == ENGINE)
    sizes = largest((term.name, term.high) for term in counted)
    parts = tuple(Message("{term} {size:.1f}", term=Message(name), size=size / GIB) for name, size in sizes)
    low = max(stage.low for stage in estimate.stages) / GIB
    stage = Message("stage {index} of {count}", index=worst.index, count=len(estimate.stages))
    yield Finding(
        Message(
            "{where} needs at least {low:.1f} GiB, but only {budget:.1f} GiB are available ({parts} GiB)"
            if sure
            else "{where} needs {low:.1f} to {high:.1f} GiB, and {budget:.1f} GiB are available ({parts} GiB)",
            where=stage if len(estimate.stages) > 1 else Message("every rank"),
            low=worst.low / GIB if sure else low,
            high=worst.required / GIB,
            budget=budget / GIB,
            parts=parts,
        ),
        span=job.place(job.plan.batch.micro, job.plan.layout.tensor, job.plan.layout.pipeline, job.plan.model.layers),
        related=tuple(place._replace(label=str(job.cluster.named.raw)) for place in job.cluster.named.related),
        severity=Severity.ERROR if sure else Severity.WARNING,
        layout=True,
    )


def largest(terms: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """The three largest terms of a stage, its activations as one."""
    sizes: dict[str, float] = {}
    for term, size in terms:
        name = term.partition(":")[0]
        sizes[name] = sizes.get(name, 0.0) + size
    return sorted(sizes.items(), key=lambda item: -item[1])[:3]
