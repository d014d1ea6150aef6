"""A setting of the allocator is that of another kind of device.

## What it does
Finds `PYTORCH_NPU_ALLOC_CONF` in a run of Megatron, NeMo RL or Megatron Bridge, and `PYTORCH_CUDA_ALLOC_CONF` in one
of MindSpeed that does not set `PYTORCH_NPU_ALLOC_CONF`, too. Other front ends train on both kinds of devices: there
the first is reported where the device is given and is a GPU.

## Why is this bad?
Nothing reads it: the allocator keeps its defaults, and a run whose memory is fragmented dies after hours.

## Example
    export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True
    torchrun pretrain_gpt.py

Use instead, on GPUs:

    export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
    torchrun pretrain_gpt.py

## References
PyTorch, c10/cuda/CUDAAllocatorConfig.h; torch_npu, torch_npu/csrc/core/npu/NPUCachingAllocator.cpp
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.job import OF_ENVIRONMENT

GPU, NPU = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF"
ON_NPUS = frozenset({"mindspeed", "mindspeed-llm-fsdp2", "mindspeed-mm"})
"""Frameworks whose runs are those of NPUs."""
ON_GPUS = frozenset({"megatron", "nemo-rl", "megatron-bridge"})
"""Frameworks without a line for NPUs; a front end that is in neither set may train on both."""


@rule(severity=Severity.WARNING, frameworks=("megatron",), reads=(OF_ENVIRONMENT,))
def check(job: Job) -> Iterator[Finding]:
    launch = job.documents[0].launch
    given = launch.environment if launch is not None else {}
    ascend = not ON_NPUS.isdisjoint(job.versions)
    own, other = (NPU, GPU) if ascend else (GPU, NPU)
    vendor = job.cluster.device.vendor if job.cluster.device is not None else ""
    if other not in given or own in given or (vendor in ("huawei", "ascend") and not ascend):
        return
    if not ascend and not vendor and job.target.framework not in ON_GPUS:
        return
    devices = "NPUs" if ascend else "GPUs"
    message = Message("nothing reads {other} on {devices}; there it is {own}", other=other, devices=devices, own=own)
    yield Finding(message, given[other].span)
