"""The number of weight shards is not a multiple of the tensor-parallel size.

## What it does
`--tensor-parallel-num-weight-shards` is the total number of shards of a weight, including those of tensor parallelism;
the option for experts relates to expert tensor parallelism in the same way. Checks that the number of shards is a
multiple of the corresponding parallel size.

## Why is this bad?
The layout cannot be computed, so the run fails at startup.

## Example
    --tensor-model-parallel-size 4 --tensor-parallel-num-weight-shards 6

Use instead: 4, 8 or another multiple of 4.

## References
Megatron-LM d98e8a6, megatron/core/model_parallel_config.py, resolve_tensor_parallel_weight_shards
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.option_names import place_of, read, typed
from preflight.source.finding import Kind

PAIRS = (
    ("tensor_parallel_num_weight_shards", "tensor_model_parallel_size", "tensor parallel"),
    ("expert_tensor_parallel_num_weight_shards", "expert_tensor_parallel_size", "expert tensor parallel"),
)


@rule(
    severity=Severity.ERROR,
    id="megatron/weight-shards",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=tuple(shards for shards, _, _ in PAIRS),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    for shards, size, words in PAIRS:
        written = typed(job, shards, size)
        if not typed(job, shards):
            continue
        if isinstance(values := read(job, size), Unverified):
            yield values
            continue
        if not written[0].known:
            yield Unverified(written[0].because)
            continue
        count, parts = written[0].raw, values[0]
        if not parts or (count >= parts and count % parts == 0):
            continue
        site = "4eeb912987" if count < parts else "93df775498"
        related = tuple(place for value in written[1:] for place in value.related)
        message = Message(
            "{count} weight shards are not a multiple of {words} {parts}", count=count, words=words, parts=parts
        )
        yield Finding(
            message,
            span=job.place(*written),
            related=related,
            key=written[0].key,
            upstream=place_of(job, site),
            layout=True,
        )
