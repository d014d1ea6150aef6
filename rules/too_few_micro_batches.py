"""There are fewer micro-batches than pipeline stages.

## What it does
Checks that graph-mode MindFormers gets at least as many micro-batches as pipeline stages. Megatron accepts fewer;
there this rule is silent.

## Why is this bad?
MindSpore's pipeline pass refuses the graph, but only when it is compiled: after the data set is built and minutes of
start-up on the real cluster. No Python check reports it earlier.

## Example
    parallel_config:
      pipeline_stage: 4
      micro_batch_num: 2

Use instead:

    parallel_config:
      pipeline_stage: 4
      micro_batch_num: 4

## Fix safety
Unsafe: more micro-batches are a larger global batch.

## References
MindSpore 2.7.1, pipeline transformer (C++): micro_batch_num must not be smaller than pipeline_stages
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, known, rule


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    count, stages, serving = job.plan.batch.count, job.plan.layout.pipeline, job.plan.inference.enabled
    if not job.plan.layout.data_stated or serving.raw is True:
        return
    if known(count, stages, serving) is None:
        yield Unverified(count.because or stages.because or serving.because)
        return
    numbers = (count.raw, stages.raw)
    if numbers[1] <= 1 or numbers[0] >= numbers[1]:
        return
    edits = count.becomes(numbers[1])
    yield Finding(
        Message.plural(
            numbers[0],
            "{batches} micro-batch is fewer than the {stages} pipeline stages",
            "{batches} micro-batches are fewer than the {stages} pipeline stages",
            batches=numbers[0],
            stages=numbers[1],
        ),
        span=job.place(count, stages),
        related=stages.related,
        key=count.key,
        fix=Fix(f"set the micro-batches to {numbers[1]}", edits, offered=True) if edits else None,
    )
