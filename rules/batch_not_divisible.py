"""The global batch is not divisible by micro-batches and data parallel ranks.

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

from preflight import Finding, Fix, Job, Message, Severity, Unverified, Value, known, rule

UPSTREAM = {
    "megatron@0.12.1": "megatron/core/num_microbatches_calculator.py:340",
    "megatron": "megatron/training/arguments.py:715",
    "pynative": "mindformers/pynative/trainer/trainer.py:596",
}


CALCULATOR = "megatron/core/num_microbatches_calculator.py:381"
"""Where Megatron 0.20 refuses a global batch whose evaluation, with a separate size, divides."""

ROUND = 32
"""Global batches that are chosen, not slipped, are multiples of it."""
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
    fixes = (
        *_smaller_parts(batch.micro, total, ranks * held),
        *_totals(batch.total, unit, _is_settled(total, ranks * held)),
    )
    yield Finding(
        Message(_SHARDED if held > 1 else _PLAIN, total=total, micro=micro, ranks=ranks, held=held, unit=unit),
        span=job.place(batch.total, batch.micro),
        related=batch.micro.related,
        key=batch.total.key,
        fix=next(iter(fixes), None),
        alternatives=fixes[1:],
        upstream=CALCULATOR if _evaluates(job, ranks * held) else job.upstream(UPSTREAM),
        layout=True,
    )


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


def _is_settled(total: int, ranks: int) -> bool:
    """Whether a global batch is round and divides over the ranks: then the micro-batch is as likely to be the slip."""
    return total % ROUND == 0 and total % ranks == 0


def _smaller_parts(micro: Value, total: int, ranks: int) -> Iterator[Fix]:
    """The micro-batches next to the one that was typed with which a round global batch divides."""
    if total % ranks or not (_is_power(total) or total % ROUND == 0) or (_is_power(total) and _is_power(micro.raw)):
        return
    share = total // ranks
    below = next(size for size in range(micro.raw, 0, -1) if share % size == 0)
    above = below * 2 if _is_power(total) else next((s for s in range(micro.raw, share) if share % s == 0), share)
    for size in (below, above):
        if share % size == 0 and (edits := micro.becomes(size)):
            yield Fix(f"set the micro batch to {size}", edits, offered=True)


def _totals(total: Value, unit: int, settled: bool) -> Iterator[Fix]:
    """The nearest global batch; with the one on the other side, and a power of 2 near by, where nothing decides between
    them."""
    whole, rest = divmod(total.raw, unit)
    near, far = sorted(
        (whole * unit, (whole + 1) * unit),
        key=lambda size: (abs(size - total.raw), not _is_power(size), size // unit % 2),
    )
    if near == 0:
        near, far = far, 0
    power = 1 << max(total.raw.bit_length() - 1, 0)
    round_ones = [size for size in (power, 2 * power) if size % unit == 0 and abs(size - total.raw) * 16 <= total.raw]
    guess = (
        settled
        or (2 * rest == unit and (not _is_power(near) or (far > 0 and _is_power(far))))
        or bool(round_ones and not _is_power(near))
    )
    for size in dict.fromkeys([*round_ones, near, far] if guess else [near]):
        if size and (edits := total.becomes(size)):
            yield Fix(f"set the global batch to {size}", edits, offered=guess)


def _evaluates(job: Job, ranks: int) -> bool:
    """Evaluation has separate sizes, which divide."""
    sizes = known(job.arguments.get("eval_global_batch_size"), job.arguments.get("eval_micro_batch_size"))
    return sizes is not None and sizes[1] > 0 and sizes[0] % (sizes[1] * ranks) == 0
