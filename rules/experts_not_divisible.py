"""The experts are not divisible by expert parallel ranks.

## What it does
Checks that every expert-parallel rank holds the same whole number of experts.

## Why is this bad?
Ranks would hold different numbers of experts; the run is refused at start-up (Megatron) or when the graph is
compiled (MindFormers).

## Example
    --num-experts 12 --expert-model-parallel-size 8

Use instead an expert-parallel size that divides the experts, here 4 or 6.

## Fix safety
Unsafe: another expert-parallel size is another layout. It is the largest smaller one that fits.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:1657, validate_args; core_v0.12.1 :852
MindFormers 2.1.0, mindformers/parallel_core/training_graph/transformer/moe/moe_layer.py:61
"""

from collections.abc import Iterator
from math import gcd

from preflight import Finding, Fix, Job, Message, Severity, Unverified, known, rule

UPSTREAM = {
    "megatron@0.12.1": "megatron/training/arguments.py:852",
    "megatron": "megatron/training/arguments.py:1657",
    "mindformers": "mindformers/parallel_core/training_graph/transformer/moe/moe_layer.py:61",
}


@rule(severity=Severity.ERROR, after=("mindformers/generic-experts", "mindformers/experts-beyond-data"))
def check(job: Job) -> Iterator[Finding | Unverified]:
    experts, parallel = job.plan.model.experts, job.plan.layout.expert
    if (numbers := known(experts, parallel)) is None:
        if because := experts.because or parallel.because:
            yield Unverified(because)
        return
    if numbers[1] <= 1 or numbers[0] % numbers[1] == 0:
        return
    fixes = tuple(_fixes(job, *numbers))
    yield Finding(
        Message.plural(
            numbers[0],
            "{experts} expert is not divisible by {ranks} expert parallel ranks",
            "{experts} experts are not divisible by {ranks} expert parallel ranks",
            experts=numbers[0],
            ranks=numbers[1],
        ),
        span=job.place(parallel, experts),
        related=experts.related,
        key=parallel.key,
        fix=next(iter(fixes), None),
        alternatives=fixes[1:],
        upstream=job.upstream(UPSTREAM),
        layout=True,
    )


def _fixes(job: Job, experts: int, parallel: int) -> Iterator[Fix]:
    """Another number of ranks, or first another number of experts where that is the odd one of the two."""
    nearest = _fitting(job, experts, parallel)
    guess = _is_a_guess(experts, parallel, nearest)
    below = experts // parallel * parallel
    whole = max((below, below + parallel), key=lambda number: (number & -number, -abs(number - experts)))
    rounder = whole & -whole > experts & -experts and abs(whole - experts) <= experts // 8
    if guess and rounder and (edits := job.plan.model.experts.becomes(whole)):
        yield Fix(f"set the number of experts to {whole}", edits, offered=True)
    if edits := job.plan.layout.expert.becomes(nearest):
        yield Fix(f"set expert parallel to {nearest}", edits, offered=guess)


def _is_a_guess(experts: int, parallel: int, nearest: int) -> bool:
    """Whether the ranks are rounder than the experts, whose number may then be the wrong one,
    or more ranks are as near, or less than half of them are left, each with more than twice the experts to hold."""
    alike = parallel < experts or experts & (experts - 1) != 0
    rounder = alike and parallel & -parallel > experts & -experts
    return rounder or experts % (2 * parallel - nearest) == 0 or 2 * nearest < parallel


def _fitting(job: Job, experts: int, parallel: int) -> int:
    """The largest smaller size that divides the experts and, where Megatron lays them out apart, the devices."""
    layout = job.plan.layout
    if layout.expert_grid and (sizes := known(layout.world, layout.expert_tensor, layout.pipeline)) is not None:
        world, apart = sizes[0], max(1, sizes[1] * sizes[2])
        found = next(
            (
                size
                for size in range(min(parallel, experts), 0, -1)
                if experts % size == 0 and world % (apart * size) == 0
            ),
            None,
        )
    else:
        found = None
    return found or gcd(experts, parallel)
