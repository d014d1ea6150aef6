"""The parallel sizes do not fit the number of devices.

## What it does
Compares the layout with the number of devices, by the rules of each framework. Megatron and MindSpeed derive data
parallelism: the devices must be a multiple of `tensor * pipeline * context`. MindFormers in semi-auto mode states
it: `data * tensor * context * pipeline` must equal the devices. Expert parallelism is not a factor of either product.

## Why is this bad?
Every rank fills exactly one cell of that grid. If grid and machine differ, process-group creation fails on all
ranks, after the queue wait has been paid.

## Example
With 16 devices:

    parallel_config: {data_parallel: 4, model_parallel: 8, pipeline_stage: 1}

Use instead:

    parallel_config: {data_parallel: 2, model_parallel: 8, pipeline_stage: 1}

## Fix safety
Unsafe: another data-parallel size is another global batch size, unless the micro-batches can make up for it.

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:432, validate_args; core_v0.12.1 :315
MindFormers v1.5.0, mindformers/tools/check_rules.py:159, _check_parallel
MindFormers 2.1.0, mindformers/pynative/distributed/parallel_dims.py:127, ParallelDims, and
mindformers/pynative/trainer/trainer.py:575
"""

from collections.abc import Iterator
from itertools import pairwise

from preflight import Edit, Finding, Fix, Job, Message, Severity, Unverified, Value, known, rule

UPSTREAM = {
    "megatron@0.12.1": "megatron/training/arguments.py:315",
    "megatron": "megatron/training/arguments.py:432",
    "mindformers@1.5.0": "mindformers/tools/check_rules.py:159",
    "mindformers@1.7.0": "mindformers/tools/check_rules.py:163",
    "mindformers": "mindformers/tools/check_rules.py:187",
    "pynative": "mindformers/pynative/distributed/parallel_dims.py:127",
}
FEWER = {**UPSTREAM, "pynative": "mindformers/pynative/trainer/trainer.py:575"}
"""Where fewer devices than one replica has are refused; more that do not divide are refused later."""

MOST_NODES = 32
"""From there on it is the layout that belongs to another machine."""
_PLAIN = "tensor {tensor} x pipeline {pipeline} x context {context}"
_SHARDED = "tensor {tensor} x pipeline {pipeline} x context {context} x weight shards {shards}"


@rule(severity=Severity.ERROR)
def check(job: Job) -> Iterator[Finding | Unverified]:
    layout = job.plan.layout
    sizes = (layout.tensor, layout.pipeline, layout.context)
    if (degrees := known(*sizes)) is None or (world := known(layout.world)) is None:
        yield Unverified(next((v.because for v in (layout.world, *sizes) if not v.known), ""))
        return
    model = (known(layout.replica) or (degrees[0] * degrees[1] * degrees[2],))[0]
    if layout.data_stated:
        yield from _stated(job, world[0], model)
    elif model > 1 and world[0] % model:
        yield Finding(
            _underived(world[0], degrees, model),
            span=job.place(*_largest_first(sizes), layout.world),
            related=layout.world.related,
            key=max(sizes, key=lambda size: size.raw if size.written else 0).key,
            fix=_more_nodes(job, model),
            upstream=job.upstream(FEWER if world[0] < model else UPSTREAM),
            layout=True,
        )


def _underived(world: int, degrees: tuple[int, ...], model: int) -> Message:
    tensor, pipeline, context = degrees
    shards = model // (tensor * pipeline * context)
    sharded = tensor * pipeline * context != model
    factors = Message(_SHARDED if sharded else _PLAIN, tensor=tensor, pipeline=pipeline, context=context, shards=shards)
    return Message.plural(
        world,
        "{world} device is not a multiple of {factors} = {model}",
        "{world} devices are not a multiple of {factors} = {model}",
        world=world,
        factors=factors,
        model=model,
    )


def _more_nodes(job: Job, model: int) -> Fix | None:
    """As many nodes as the layout needs, where the number of nodes is typed and is too small."""
    world, each = job.plan.layout.world, known(job.cluster.per_node)
    if each is None or each[0] <= 0 or model % each[0] or world.raw >= model or world.span is None:
        return None
    launch, nodes = job.documents[0].launch, model // each[0]
    if nodes > MOST_NODES:
        return None
    words = launch.launcher_words if launch is not None else ()
    flag = next((one.text for one, value in pairwise(words) if value.span == world.span), None)
    if flag is None or world.span.text != str(world.raw // each[0]):
        return None
    return Fix(f"run on {nodes} nodes", (Edit("splice", (flag,), str(nodes), world.span),), offered=True)


def _stated(job: Job, world: int, model: int) -> Iterator[Finding]:
    layout = job.plan.layout
    if (data := known(layout.data)) is None or data[0] * model == world:
        return
    fixes = _restate(job, data[0], world // model) if world > 0 and model > 0 and world % model == 0 else ()
    yield Finding(
        Message.plural(
            data[0] * model,
            "{data} data x {model} model-parallel ranks need {needed} device, the job has {world}",
            "{data} data x {model} model-parallel ranks need {needed} devices, the job has {world}",
            data=data[0],
            model=model,
            needed=data[0] * model,
            world=world,
        ),
        span=job.place(layout.data, layout.tensor, layout.pipeline),
        related=(*layout.tensor.related, *layout.pipeline.related, *layout.context.related),
        key=layout.data.key,
        fix=fixes[0] if fixes else None,
        alternatives=fixes[1:],
        upstream=job.upstream(UPSTREAM),
        layout=True,
    )


def _restate(job: Job, before: int, after: int) -> tuple[Fix, ...]:
    """Data parallel that fits. Where micro-batches would keep the global batch, nothing shows whether the size was a
    slip or the job has become another: both ways are offered."""
    edits = job.plan.layout.data.becomes(after)
    if not edits:
        return ()
    batches = known(job.plan.batch.count)
    more = batches[0] * before if batches else 0
    if more and more % after == 0 and (others := job.plan.batch.count.becomes(more // after)):
        template = "set data parallel to {data} and the micro-batches to {count}, which keeps the global batch"
        both = Message(template, data=after, count=more // after)
        return Fix(both, edits + others, offered=True), Fix(f"set data parallel to {after}", edits, offered=True)
    return (Fix(f"set data parallel to {after}", edits),)


def _largest_first(sizes: tuple[Value, ...]) -> list[Value]:
    return sorted(sizes, key=lambda size: -size.raw)
