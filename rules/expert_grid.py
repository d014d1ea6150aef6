"""The expert layout does not fit the number of devices.

## What it does
Megatron lays experts out on a separate grid: the devices must be a multiple of
`expert tensor * expert * pipeline`, times the further weight shards where expert weights have some. Expert tensor
parallel defaults to tensor parallel; context parallel is not a factor. The devices of an encoder with separate
pipeline stages do not count. An expert size that does not divide the experts either is left to experts-not-divisible.

## Why is this bad?
The expert process groups cannot be formed: every rank dies at start-up with a message about the decoder world size.
A recipe shrunk from two nodes to one fails this way although tensor, pipeline and context sizes still fit.

## Example
On 8 devices: tensor parallel 4 and expert parallel 8 need 32.

    --tensor-model-parallel-size 4 --expert-model-parallel-size 8

Use instead:

    --tensor-model-parallel-size 4 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1

## Fix safety
Unsafe: experts are sharded in another way.

## References
Megatron-LM d98e8a6, megatron/core/parallel_state.py:882, initialize_model_parallel; core_v0.12.1 :700
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, known, rule

UPSTREAM = {"megatron@0.12.1": "megatron/core/parallel_state.py:700", "megatron": "megatron/core/parallel_state.py:882"}

_PLAIN = "expert tensor {tensor} x expert {expert} x pipeline {pipeline}"
_SHARDED = "expert tensor {tensor} x expert {expert} x pipeline {pipeline} x weight shards {held}"


@rule(
    severity=Severity.ERROR,
    frameworks=("megatron",),
    after=("device-count", "megatron/expert-parallel-without-experts"),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    layout = job.plan.layout
    shards = job.arguments.get("expert_gtp_weight_remat_size")
    ranks = job.arguments.get("decoder_world_size")
    values = (ranks, layout.expert_tensor, layout.expert, layout.pipeline, shards)
    if (numbers := known(*values)) is None:
        yield Unverified(next((v.because for v in values if not v.known), ""))
        return
    world, tensor, expert, pipeline, held = numbers
    grid = tensor * expert * pipeline * held
    if grid <= 1 or world % grid == 0 or (_uneven(job, expert) and world % (grid // expert) == 0):
        return
    fix, shared = None, job.arguments.given("expert_tensor_parallel_num_weight_shards") is not None
    if (
        not shared
        and world % (expert * pipeline) == 0
        and (edits := job.arguments.put("expert_tensor_parallel_size", 1))
    ):
        fix = Fix("keep experts whole: expert tensor parallel 1", edits)
    factors = Message(_SHARDED if held > 1 else _PLAIN, tensor=tensor, expert=expert, pipeline=pipeline, held=held)
    yield Finding(
        Message.plural(
            world,
            "{world} device is not a multiple of {factors} = {grid}",
            "{world} devices are not a multiple of {factors} = {grid}",
            world=world,
            factors=factors,
            grid=grid,
        ),
        span=job.place(layout.expert, layout.expert_tensor, layout.pipeline),
        related=(*layout.expert_tensor.related, *layout.pipeline.related),
        key=layout.expert.key,
        fix=fix,
        upstream=job.upstream(UPSTREAM),
        layout=True,
    )


def _uneven(job: Job, parallel: int) -> bool:
    """The experts do not divide by that size either: a size is wrong that is asked about elsewhere, and first."""
    experts = known(job.plan.model.experts)
    return experts is not None and experts[0] % parallel != 0
