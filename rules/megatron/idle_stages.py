"""A pre-training step has one micro-batch for all stages of the pipeline.

## What it does
Computes the micro-batches of a step, the global batch over micro-batch and data parallel, where
`--pipeline-model-parallel-size` is above 1 and an entry script for pre-training is started.

## Why is this bad?
A micro-batch passes through the stages one after another: of four stages three wait at any time. The run trains, at a
quarter of its speed or less.

## Example
    --pipeline-model-parallel-size 4 --micro-batch-size 1 --global-batch-size 1

Use instead:

    --pipeline-model-parallel-size 4 --micro-batch-size 1 --global-batch-size 32

## References
Narayanan et al. 2021, https://arxiv.org/abs/2104.04473, section 2.2: the bubble takes (p - 1) / m of a step
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule


@rule(severity=Severity.WARNING, id="megatron/idle-stages", frameworks=("megatron",), reads=("global_batch_size",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    batch, stages = job.plan.batch.count, job.plan.layout.pipeline
    numbers = known(batch, stages)
    if numbers is None:
        yield Unverified(batch.because or stages.because)
        return
    pretrains = str(job.arguments.get("entry").raw).startswith("pretrain") and job.arguments.given("stage") is None
    if numbers[0] == 1 < numbers[1] and pretrains and job.arguments.given("finetune") is None:
        message = Message("1 micro-batch for {stages} pipeline stages: all but one of them wait", stages=numbers[1])
        size = job.arguments.given("global_batch_size")
        yield Finding(message, job.place(size, stages), related=stages.related)
