"""The checkpoints of the run do not fit where it saves them.

## What it does
With `--site`, compares the free space with the size of a checkpoint: 14 bytes a parameter where Adam's state is
saved with weights of 16 bits, 2 without that state; and with all that the run keeps. A quota is not known.

## Why is this bad?
The run ends when the disk is full, or leaves a checkpoint that is cut off. Megatron keeps every checkpoint unless
`--save-retain-interval` is given.

## Example
With 500 GiB free, under `--site`, for a network of 70 billion parameters:

    --save /scratch/out --save-interval 100

Use instead a file system with room for at least two checkpoints of 913 GiB.

## References
Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:489, save_checkpoint
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.memory.parameters import model
from preflight.memory.shape import Missing, shape

GIB = 1 << 30
STATE = 12
"""Bytes of a parameter's main copy and of Adam's two states, of 32 bits each."""
ONE = "a checkpoint has about {size:,.0f} GiB, {free:,.1f} GiB are free at {path}"
ALL = "the {count:,} checkpoints that the run keeps have about {size:,.0f} GiB, {free:,.1f} GiB are free at {path}"


@rule(severity=Severity.WARNING, reads=("(site)",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Checkpoints that are larger than what is free."""
    found, get = job.site.save if job.site is not None else None, job.arguments.get
    if found is None or found.fault or not found.free:
        return
    try:
        parameters = model(shape(job.plan))
    except (Missing, ArithmeticError, ValueError, TypeError, IndexError):
        yield Unverified("the number of parameters is not known")
        return
    left_out = get("no_save_optim")
    state = STATE if job.plan.optimizer.name.raw == "adam" and left_out.known and not left_out.raw else 0
    each = 4 if job.plan.precision.parameters.raw == "fp32" else 2
    size, place = parameters * (each + state), job.place(job.arguments.given(found.argument))
    steps, every, kept = (get(name).raw for name in ("train_iters", "save_interval", "save_retain_interval"))
    known = type(steps) is int and type(every) is int and every > 0 and kept is None
    count = max(1, steps // every) if known else 1
    if size > found.free:
        yield Finding(Message(ONE, size=size / GIB, free=found.free / GIB, path=found.path), place)
    elif size * count > found.free:
        message = Message(ALL, count=count, size=size * count / GIB, free=found.free / GIB, path=found.path)
        yield Finding(message, place)
