"""max_device_memory leaves no room for communication buffers.

## What it does
Adds to the memory pool what lies outside it: two HCCL buffers of `HCCL_BUFFSIZE` MB (200 by default) for each
communicator that the layout uses. Together they must fit into what a process can get of the device: 60.97 GiB of a 64
GB Atlas A2 card.

## Why is this bad?
The pool is taken first. The communicators then fail to get their buffers, often only when the first collective of a
group runs, with an error about HCCL and not about memory.

## Example
On a 64 GB card:

    context: {max_device_memory: "61GB"}

Use instead:

    context: {max_device_memory: "58GB"}

## Fix safety
No fix: how low the pool may be depends on what the model needs; `preflight memory` shows it.

## References
MindSpore, context.set_context(max_device_memory); HCCL, HCCL_BUFFSIZE: each communicator occupies two buffers
exclusively
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule

GIB = 2**30
_POOL = "a pool of {pool:g} GiB exceeds the {usable:.2f} GiB that a process gets of {device}"
_BOTH = (
    "a pool of {pool:g} GiB and {buffers:.1f} GiB of communication buffers exceed the {usable:.2f} GiB that a "
    "process gets of {device}"
)


@rule(severity=Severity.WARNING, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    device, pool = job.cluster.device, job.cluster.memory
    if not pool.known or not pool.written:
        return
    if device is None or device.usable is None:
        yield Unverified("the device's memory is unknown")
        return
    if device.vendor != "ascend":
        return
    buffers = job.memory.outside
    if pool.raw + buffers > device.usable:
        message = Message(
            _BOTH if buffers else _POOL,
            pool=pool.raw / GIB,
            buffers=buffers / GIB,
            usable=device.usable / GIB,
            device=device.name,
        )
        yield Finding(message, span=job.place(pool), key=pool.key)
