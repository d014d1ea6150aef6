"""The global batch does not divide over micro-batches and data parallel ranks.

## What it does
Checks that the global batch is a multiple of `micro batch * data parallel` (and of the weight shards beyond tensor
parallelism, where there are some), where the framework takes the global
batch as an input (Megatron, MindSpeed, MindFormers pynative). Graph-mode MindFormers computes it and cannot be wrong.

## Why is this bad?
The number of micro-batches would not be whole: refused at start-up. Megatron reports it as a fault of the
*evaluation* batch, which defaults to the global batch.

## Example
On 8 data-parallel ranks:

    --micro-batch-size 2 --global-batch-size 100

Use instead:

    --micro-batch-size 2 --global-batch-size 96

## Fix safety
Unsafe: another global batch is another training run.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:715, validate_args, and
megatron/core/num_microbatches_calculator.py:381
Megatron-LM core_v0.12.1, megatron/core/num_microbatches_calculator.py:340
MindFormers 2.1.0, mindformers/pynative/trainer/trainer.py:596; again in
mindformers/pynative/trainer/dynamic_batch.py:141
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, known, rule

UPSTREAM = {
    "megatron@0.12.1": "megatron/core/num_microbatches_calculator.py:340",
    "megatron": "megatron/training/arguments.py:715",
    "pynative": "mindformers/pynative/trainer/trainer.py:596",
}


CALCULATOR = "megatron/core/num_microbatches_calculator.py:381"
"""Where Megatron 0.20 refuses a global batch whose evaluation, with a size of its own, divides."""

_PLAIN = "global batch {total} is not a multiple of micro batch {micro} x data parallel {ranks} = {unit}"
_SHARDED = (
    "global batch {total} is not a multiple of micro batch {micro} x data parallel {ranks} x weight shards {held} "
    "= {unit}"
)


@rule(severity=Severity.ERROR, after=("device-count",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    batch, data, shards = job.plan.batch, job.plan.layout.data, job.plan.layout.weight_shards
    values = (batch.total, batch.micro, data, *((shards,) if shards is not None else ()))
    if (numbers := known(*values)) is None:
        yield Unverified(next((v.because for v in values if not v.known), ""))
        return
    total, micro, ranks, *more = numbers
    held = more[0] if more else 1
    unit = micro * ranks * held
    if unit <= 1 or total % unit == 0:
        return
    whole, rest = divmod(total, unit)
    nearest = max(unit, (whole + (2 * rest > unit or (2 * rest == unit and whole % 2 == 1))) * unit)
    edits = batch.total.becomes(nearest)
    guess = 2 * rest == unit and nearest & (nearest - 1) != 0  # another one is as near, and this is no power of 2
    yield Finding(
        Message(_SHARDED if held > 1 else _PLAIN, total=total, micro=micro, ranks=ranks, held=held, unit=unit),
        span=job.place(batch.total, batch.micro),
        related=batch.micro.related,
        key=batch.total.key,
        fix=Fix(f"set the global batch to {nearest}", edits, offered=guess) if edits else None,
        upstream=CALCULATOR if _evaluates(job, ranks * held) else job.upstream(UPSTREAM),
        layout=True,
    )


def _evaluates(job: Job, ranks: int) -> bool:
    """Evaluation has sizes of its own, which divide."""
    sizes = known(job.arguments.get("eval_global_batch_size"), job.arguments.get("eval_micro_batch_size"))
    return sizes is not None and sizes[1] > 0 and sizes[0] % (sizes[1] * ranks) == 0
