"""Context parallelism in two levels.

## What it does
Checks that the sizes of `--hierarchical-context-parallel-sizes` multiply to the context-parallel size.

## Why is this bad?
Every rank belongs to one group of each level. If the levels do not multiply to the whole, the run is refused at start-up.

## Example
    --context-parallel-size 8 --hierarchical-context-parallel-sizes 2 2

Use instead `2 4`.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:582, validate_args; core_v0.12.1 :353
"""

from collections.abc import Iterator
from math import prod

from preflight import Finding, Job, Severity, Unverified, rule
from preflight.rules.megatron.core_reading import read, typed
from preflight.rules.megatron.training_names import ARGUMENTS

PLACES = {"megatron@0.12.1": f"{ARGUMENTS}:353", "megatron": f"{ARGUMENTS}:582"}


@rule(severity=Severity.ERROR, id="megatron/context-sizes", frameworks=("megatron",), upstream=tuple(PLACES.values()))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Levels of context parallelism against its size."""
    given = typed(job, "hierarchical_context_parallel_sizes", "context_parallel_size")
    if not typed(job, "hierarchical_context_parallel_sizes"):
        return
    values = read(job, "hierarchical_context_parallel_sizes", "context_parallel_size")
    if isinstance(values, Unverified):
        yield values
        return
    levels, size = values
    if not levels or prod(levels) == size:
        return
    shown = " x ".join(map(str, levels))
    related = tuple(place for value in given[1:] for place in value.related)
    message = f"context parallel levels {shown} make {prod(levels)}, context parallel is {size}"
    yield Finding(message, span=job.place(*given), related=related, key=given[0].key, upstream=job.upstream(PLACES), layout=True)
