"""The sizes of two-level context parallelism do not match the context-parallel size.

## What it does
Checks that the product of the sizes in `--hierarchical-context-parallel-sizes` is the context-parallel size.

## Why is this bad?
Every rank belongs to one group per level. If the product of the sizes is not the context-parallel size, the run fails
at startup.

## Example
    --context-parallel-size 8 --hierarchical-context-parallel-sizes 2 2

Use instead: `2 4`.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:582, validate_args; core_v0.12.1 :353
"""

from collections.abc import Iterator
from math import prod

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.option_names import read, typed
from preflight.source.finding import Kind


@rule(
    severity=Severity.ERROR,
    id="megatron/context-sizes",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=("hierarchical_context_parallel_sizes",),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """The levels of context parallelism compared with the context-parallel size."""
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
    message = Message(
        "--hierarchical-context-parallel-sizes {shown} = {product} must equal the context-parallel size {size}",
        shown=shown,
        product=prod(levels),
        size=size,
    )
    yield Finding(message, span=job.place(*given), related=related, key=given[0].key, layout=True)
