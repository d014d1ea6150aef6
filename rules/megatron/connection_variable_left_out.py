"""A script that sets other environment variables does not set CUDA_DEVICE_MAX_CONNECTIONS.

## What it does
Points at the parallel size that needs `CUDA_DEVICE_MAX_CONNECTIONS=1`, in a script that exports variables, but not this
one. The device must be known: Ascend NPUs, or a GPU before Blackwell that is named.

## Why is this bad?
The caller may set the variable. Otherwise the run is refused at launch.

## Example
    export NCCL_IB_TIMEOUT=22
    torchrun pretrain_gpt.py --tensor-model-parallel-size 2

Use instead:

    export NCCL_IB_TIMEOUT=22
    export CUDA_DEVICE_MAX_CONNECTIONS=1
    torchrun pretrain_gpt.py --tensor-model-parallel-size 2

## Fix safety
Unsafe, and only offered: the variable may be set outside of the script.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py, validate_args; core_v0.12.1 :779
"""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, known, rule
from preflight.job import OF_ENVIRONMENT
from preflight.source.finding import Kind

NAME = "CUDA_DEVICE_MAX_CONNECTIONS"
OTHERWISE = ("use_torch_fsdp2", "use_megatron_fsdp", "use_custom_fsdp", "overlap_moe_expert_parallel_comm")


@rule(
    severity=Severity.WARNING,
    id="connection-variable-left-out",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    after=("megatron/connection-variable-missing", "megatron/one-connection-missing"),
    reads=(OF_ENVIRONMENT,),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    launch, device = job.documents[0].launch, job.cluster.device
    ascend = "mindspeed" in job.versions
    if launch is None or not launch.environment or NAME in tuple(job.arguments.environment):
        return
    if not ascend and (device is None or not 0 < device.architecture < 10):
        return
    layout = job.plan.layout
    if (sizes := known(layout.tensor, layout.context)) is None:
        yield Unverified(layout.tensor.because or layout.context.because)
        return
    split = layout.tensor if sizes[0] > 1 else layout.context
    others = [job.arguments.get(name) for name in OTHERWISE]
    if (sizes[0] < 2 and (ascend or sizes[1] < 2)) or any(other.known and other.raw for other in others):
        return
    if (unknown := next((other for other in others if not other.known), None)) is not None:
        yield Unverified(unknown.because)
        return
    edits = job.arguments.export(NAME, 1)
    yield Finding(
        Message("{name} is not set here: the run is refused unless the environment sets it to 1", name=NAME),
        job.place(split),
        key=split.key,
        fix=Fix(f"set {NAME}=1", edits, offered=True) if edits else None,
    )
