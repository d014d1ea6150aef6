"""The expert-parallel degree of a pynative run does not divide its ranks, or its FSDP shards do not fit.

## What it does
Expert parallel is cut out of shard x context x tensor ranks within one data-parallel replica: the degree must divide
that number, and replicas do not help. Also finds a `data_parallel_shard` whose whole replicas do not fill data
parallel.

## Why is this bad?
The mesh of the experts, or of the dense weights, cannot be built; every rank dies at start.

## Example
With 16 devices:
    parallelism: {tensor_parallel: 2, data_parallel_shard: 2, expert_parallel: 8}
Use instead:
    parallelism: {tensor_parallel: 2, data_parallel_shard: -1, expert_parallel: 8}

## References
MindFormers 2.1.0, mindformers/pynative/distributed/parallel_dims.py:127-142, ParallelDims._validate
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, known, rule

_DIMS = "mindformers/pynative/distributed/parallel_dims.py"


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    a, layout = job.arguments, job.plan.layout
    if a.get("distributed").raw is not True:
        return
    shard, expert = a.get("parallelism.data_parallel_shard"), layout.expert
    split, written = known(layout.data, a.get("data_parallel_replicate")), a.given("parallelism.data_parallel_shard")
    if split is not None and written is not None and split[0] % split[1]:
        message = Message(
            (
                "data parallel {data} does not divide into the {replicas} replicas that data_parallel_shard "
                "{written} makes"
            ),
            written=written.raw,
            replicas=split[1],
            data=split[0],
        )
        yield Finding(
            message, job.place(written), layout.data.related, key=written.key, upstream=f"{_DIMS}:128", layout=True
        )
        return
    values = known(shard, layout.context, layout.tensor, expert)
    if values is None:
        return
    region = values[0] * values[1] * values[2]
    if region % values[3]:
        message = Message(
            (
                "expert_parallel {expert} does not divide {region} ranks (shard {shard} x context {context} x "
                "tensor {tensor})"
            ),
            expert=values[3],
            region=region,
            shard=values[0],
            context=values[1],
            tensor=values[2],
        )
        related = (*shard.related, *layout.tensor.related)
        yield Finding(message, job.place(expert), related, key=expert.key, upstream=f"{_DIMS}:142", layout=True)
