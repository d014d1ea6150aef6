"""Checks that batches, experts, attention heads and micro-batches fit the parallel sizes."""

from collections.abc import Iterator
from math import gcd

from preflight import Finding, Fix, Job, Message, Severity, Unverified, Value, known, rule

BATCH_UPSTREAM = {
    "megatron@0.6.0": "megatron/training/microbatches.py:64",
    "megatron@0.7.0": "megatron/training/microbatches.py:64",
    "megatron@0.8.0": "megatron/core/num_microbatches_calculator.py:182",
    "megatron@0.9.0": "megatron/core/num_microbatches_calculator.py:328",
    "megatron@0.10.0": "megatron/core/num_microbatches_calculator.py:340",
    "megatron@0.11.0": "megatron/core/num_microbatches_calculator.py:340",
    "megatron@0.12.1": "megatron/core/num_microbatches_calculator.py:340",
    "megatron": "megatron/training/arguments.py:715",
    "pynative": "mindformers/pynative/trainer/trainer.py:596",
}


CALCULATOR = "megatron/core/num_microbatches_calculator.py:381"
"""The place where Megatron 0.20 rejects a global batch although the separate evaluation batch is divisible."""

ROUND = 32
"""Global batches that were chosen on purpose, rather than mistyped, are multiples of this."""
_PLAIN = (
    "the global batch size {total} is not a multiple of micro-batch size {micro} × data-parallel size {ranks} = {unit}"
)
_SHARDED = (
    "the global batch size {total} is not a multiple of micro-batch size {micro} × data-parallel size {ranks} × "
    "weight shards {held} = {unit}"
)


@rule(id="batch-not-divisible", severity=Severity.ERROR, after=("device-count",))
def batch_not_divisible(job: Job) -> Iterator[Finding | Unverified]:
    """The global batch size is not divisible by the micro-batch size times the data-parallel size.

    ## What it does
    Checks that the global batch size is a multiple of `micro-batch size * data-parallel size` (times the weight shards
    beyond tensor parallelism, if there are any) in frameworks that read the global batch size from the config
    (Megatron, MindSpeed, MindFormers pynative). Graph-mode MindFormers computes the global batch, so it is always
    consistent there.

    ## Why is this bad?
    The number of micro-batches would not be an integer, so the framework rejects the run at startup. Megatron
    reports this as an error in the *evaluation* batch, which defaults to the global batch.

    ## Example
    On 8 data-parallel ranks:

        --micro-batch-size 2 --global-batch-size 100

    Use instead:

        --micro-batch-size 2 --global-batch-size 96

    ## Fix safety
    Unsafe: a different global batch changes the training run.

    ## References
    Megatron-LM d98e8a6, megatron/training/arguments.py:715, validate_args, and
    megatron/core/num_microbatches_calculator.py:381
    Megatron-LM core_v0.12.1, megatron/core/num_microbatches_calculator.py:340
    MindFormers 2.1.0, mindformers/pynative/trainer/trainer.py:596; again in
    mindformers/pynative/trainer/dynamic_batch.py:141
    """
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
        upstream=CALCULATOR if _evaluates(job, ranks * held) else job.upstream(BATCH_UPSTREAM),
        layout=True,
    )


def _is_power(number: int) -> bool:
    return number.bit_count() == 1


def _is_settled(total: int, ranks: int) -> bool:
    """Whether a global batch is round and divisible by the ranks: then the micro-batch is as likely to be the
    mistake."""
    return total % ROUND == 0 and total % ranks == 0


def _smaller_parts(micro: Value, total: int, ranks: int) -> Iterator[Fix]:
    """The micro-batches closest to the given one that divide a round global batch."""
    if total % ranks or not (_is_power(total) or total % ROUND == 0) or (_is_power(total) and _is_power(micro.raw)):
        return
    share = total // ranks
    below = next(size for size in range(micro.raw, 0, -1) if share % size == 0)
    above = below * 2 if _is_power(total) else next((s for s in range(micro.raw, share) if share % s == 0), share)
    for size in (below, above):
        if share % size == 0 and (edits := micro.becomes(size)):
            yield Fix(f"set the micro-batch size to {size}", edits, offered=True)


def _totals(total: Value, unit: int, settled: bool) -> Iterator[Fix]:
    """The nearest valid global batch; if nothing decides between them, also the one on the other side and a nearby
    power of 2."""
    whole, rest = divmod(total.raw, unit)
    near, far = sorted(
        (whole * unit, (whole + 1) * unit),
        key=lambda size: (abs(size - total.raw), not _is_power(size), size // unit % 2),
    )
    if near == 0:
        near, far = far, 0
    power = 1 << total.raw.bit_length() - 1
    round_ones = [size for size in (power, 2 * power) if size % unit == 0 and abs(size - total.raw) * 16 <= total.raw]
    guess = (
        settled
        or (2 * rest == unit and (not _is_power(near) or _is_power(far)))
        or bool(round_ones and not _is_power(near))
    )
    for size in dict.fromkeys([*round_ones, near, far] if guess else [near]):
        if size and (edits := total.becomes(size)):
            yield Fix(f"set the global batch size to {size}", edits, offered=guess)


def _evaluates(job: Job, ranks: int) -> bool:
    """Whether evaluation has separate sizes that are divisible."""
    sizes = known(job.arguments.get("eval_global_batch_size"), job.arguments.get("eval_micro_batch_size"))
    return sizes is not None and sizes[1] > 0 and sizes[0] % (sizes[1] * ranks) == 0


EXPERTS_UPSTREAM = {
    "megatron@0.12.1": "megatron/training/arguments.py:852",
    "megatron": "megatron/training/arguments.py:1657",
    "mindformers": "mindformers/parallel_core/training_graph/transformer/moe/moe_layer.py:61",
}


@rule(
    id="experts-not-divisible",
    severity=Severity.ERROR,
    after=("mindformers/generic-experts", "mindformers/experts-beyond-data"),
)
def experts_not_divisible(job: Job) -> Iterator[Finding | Unverified]:
    """The number of experts is not divisible by the expert-parallel size.

    ## What it does
    Checks that every expert-parallel rank holds the same number of whole experts.

    ## Why is this bad?
    Ranks would hold different numbers of experts. Megatron rejects the run at startup, and MindFormers rejects it when
    it compiles the graph.

    ## Example
        --num-experts 12 --expert-model-parallel-size 8

    Use an expert-parallel size that divides the experts instead, here 4 or 6.

    ## Fix safety
    Unsafe: a different expert-parallel size changes the layout. The fix uses the largest smaller size that fits.

    ## References
    Megatron-LM d98e8a6, megatron/training/arguments.py:1657, validate_args; core_v0.12.1 :852
    MindFormers 2.1.0, mindformers/parallel_core/training_graph/transformer/moe/moe_layer.py:61
    """
    experts, parallel = job.plan.model.experts, job.plan.layout.expert
    if (numbers := known(experts, parallel)) is None:
        if because := experts.because or parallel.because:
            yield Unverified(because)
        return
    if numbers[1] <= 1 or numbers[0] % numbers[1] == 0:
        return
    fixes = tuple(_fixes(job, *numbers))
    yield Finding(
        Message.plural(
            numbers[0],
            "{experts} expert is not divisible by {ranks} expert-parallel ranks",
            "{experts} experts are not divisible by {ranks} expert-parallel ranks",
            experts=numbers[0],
            ranks=numbers[1],
        ),
        span=job.place(parallel, experts),
        related=experts.related,
        key=parallel.key,
        fix=next(iter(fixes), None),
        alternatives=fixes[1:],
        upstream=job.upstream(EXPERTS_UPSTREAM),
        layout=True,
    )


def _fixes(job: Job, experts: int, parallel: int) -> Iterator[Fix]:
    """A different number of ranks, preceded by a different number of experts if that is the less round of the two."""
    nearest = _fitting(job, experts, parallel)
    guess = _is_a_guess(experts, parallel, nearest)
    below = experts // parallel * parallel
    whole = max((below, below + parallel), key=lambda number: (number & -number, -abs(number - experts)))
    rounder = whole & -whole > experts & -experts and abs(whole - experts) <= experts // 8
    if guess and rounder and (edits := job.plan.model.experts.becomes(whole)):
        yield Fix(f"set the number of experts to {whole}", edits, offered=True)
    if edits := job.plan.layout.expert.becomes(nearest):
        yield Fix(f"set the expert-parallel size to {nearest}", edits, offered=guess)


def _is_a_guess(experts: int, parallel: int, nearest: int) -> bool:
    """Whether the fix is a guess: the ranks are rounder than the experts, whose number may then be the wrong one, or a
    larger number of ranks is just as close, or fewer than half of the ranks would remain."""
    alike = parallel < experts or experts & (experts - 1) != 0
    rounder = alike and parallel & -parallel > experts & -experts
    return rounder or experts % (2 * parallel - nearest) == 0 or 2 * nearest < parallel


def _fitting(job: Job, experts: int, parallel: int) -> int:
    """The largest smaller size that divides the experts and, if Megatron lays them out on a separate grid, the
    devices."""
    layout = job.plan.layout
    if layout.expert_grid and (sizes := known(layout.world, layout.expert_tensor, layout.pipeline)) is not None:
        world, apart = sizes[0], max(1, sizes[1] * sizes[2])
        found = next(
            (
                size
                for size in range(min(parallel, experts), 0, -1)
                if experts % size == 0 and world % (apart * size) == 0
            ),
            None,
        )
    else:
        found = None
    return found or gcd(experts, parallel)


HEADS_UPSTREAM = {
    "megatron@0.12.1": "megatron/core/transformer/transformer_config.py:559",
    "megatron": "megatron/core/transformer/transformer_config.py:1447",
    "mindformers/legacy": "mindformers/models/llama/llama_transformer.py:183",
    "mindformers/mcore@1.7.0": "mindformers/parallel_core/transformer_config.py:446",
    "mindformers/mcore": "mindformers/parallel_core/transformer_config.py:2349",
    "pynative/dsa": "mindformers/pynative/base_models/gpt/parallelize.py:892",
    "pynative": "mindformers/pynative/base_models/gpt/parallelize.py:729",
}


@rule(
    id="heads-not-divisible",
    severity=Severity.ERROR,
    after=("mindspeed/tp-2d-sizes", "mindformers/hidden-over-heads", "megatron/hidden-over-heads"),
)
def heads_not_divisible(job: Job) -> Iterator[Finding | Unverified]:
    """The number of attention heads is not divisible by the tensor-parallel size.

    ## What it does
    Checks that every tensor-parallel rank gets the same number of whole attention heads.

    ## Why is this bad?
    A head cannot be split across ranks, so every rank rejects the model configuration at startup.

    ## Example
        num_heads: 40        # 40 / 16 is not whole
        model_parallel: 16

    Use a tensor-parallel size that divides the heads instead, here 8.

    ## Fix safety
    No automatic fix: a different tensor-parallel size changes the layout.

    ## References
    Megatron-LM d98e8a6, megatron/core/transformer/transformer_config.py:1447; core_v0.12.1 :559
    MindFormers v1.5.0, mindformers/modules/transformer/transformer.py:1654 and models/llama/llama_transformer.py:183
    MindFormers v1.7.0, mindformers/parallel_core/transformer_config.py:446; 2.1.0 :2349
    MindFormers 2.1.0, mindformers/pynative/base_models/gpt/parallelize.py:729, with sparse attention :892; again in
    mindformers/pynative/base_models/gpt/parallelize.py:750 and mindformers/pynative/base_models/gpt/parallelize.py:1751
    MindFormers v1.5.0, mindformers/models/llama/llama_layer.py:454, the hidden size on the same ranks
    """
    heads, layout = job.plan.model.heads, job.plan.layout
    # MindSpeed distributes heads unevenly: mindspeed/core/transformer/transformer_config.py:21
    uneven = job.arguments.get("unaligned_linear")
    plane = job.arguments.get("tp_2d")  # 2-D tensor parallelism splits heads in one direction
    tensor = layout.tensor_x if plane.raw is True else layout.tensor
    if not layout.heads_split:
        return
    if (numbers := known(heads, tensor)) is None:
        yield Unverified(heads.because or tensor.because)
        return
    if numbers[1] <= 1 or numbers[0] % numbers[1] == 0 or uneven.raw is True:
        return
    if not (uneven.known and plane.known):
        yield Unverified(uneven.because or plane.because)
        return
    yield Finding(
        Message.plural(
            numbers[0],
            "{heads} attention head is not divisible by {ranks} tensor-parallel ranks",
            "{heads} attention heads are not divisible by {ranks} tensor-parallel ranks",
            heads=numbers[0],
            ranks=numbers[1],
        ),
        span=job.place(tensor, heads),
        related=heads.related if tensor.written else (),
        key=tensor.key or heads.key,
        upstream=job.upstream(HEADS_UPSTREAM),
        layout=True,
    )


@rule(id="too-few-micro-batches", severity=Severity.ERROR, frameworks=("mindformers",))
def too_few_micro_batches(job: Job) -> Iterator[Finding | Unverified]:
    """There are fewer micro-batches than pipeline stages.

    ## What it does
    Checks that graph-mode MindFormers gets at least as many micro-batches as pipeline stages. Megatron accepts fewer,
    so this rule does not report them there.

    ## Why is this bad?
    MindSpore's pipeline pass rejects the graph, but only at compilation, after the dataset has been built and the
    cluster has spent minutes starting up. No Python check reports the problem earlier.

    ## Example
        parallel_config:
          pipeline_stage: 4
          micro_batch_num: 2

    Use instead:

        parallel_config:
          pipeline_stage: 4
          micro_batch_num: 4

    ## Fix safety
    Unsafe: more micro-batches make the global batch larger.

    ## References
    MindSpore 2.7.1, pipeline transformer (C++): micro_batch_num must not be smaller than pipeline_stages
    """
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
        fix=Fix(f"set the number of micro-batches to {numbers[1]}", edits, offered=True) if edits else None,
    )
