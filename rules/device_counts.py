"""Checks that the layout, the launcher and the scheduler agree on the numbers of devices and nodes."""

from collections.abc import Iterator
from itertools import pairwise

from preflight import Edit, Finding, Fix, Job, Message, Related, Severity, Unverified, Value, known, rule
from preflight.dialects.device_and_release import SOURCE
from preflight.loaders.document import Count

COUNT_UPSTREAM = {
    "megatron@0.12.1": "megatron/training/arguments.py:315",
    "megatron": "megatron/training/arguments.py:432",
    "mindformers@1.5.0": "mindformers/tools/check_rules.py:159",
    "mindformers@1.7.0": "mindformers/tools/check_rules.py:163",
    "mindformers": "mindformers/tools/check_rules.py:187",
    "pynative": "mindformers/pynative/distributed/parallel_dims.py:127",
}
COUNT_FEWER = {**COUNT_UPSTREAM, "pynative": "mindformers/pynative/trainer/trainer.py:575"}
"""The place where a run with fewer devices than one replica needs is rejected; an indivisible larger number is rejected
later."""

MOST_NODES = 32
"""If more nodes than this are needed, the layout was probably written for a different machine."""
FAR = 4
"""If a layout needs this many times the devices, and the model does not, the layout was probably copied."""
BYTES = 18
"""A weight, its gradient and the states of Adam in mixed precision."""
SMALL_DEVICE = 40e9
"""Bytes of the smallest device that such runs use."""
_COUNT_PLAIN = "tensor {tensor} × pipeline {pipeline} × context {context}"
_COUNT_SHARDED = "tensor {tensor} × pipeline {pipeline} × context {context} × weight shards {shards}"


@rule(id="device-count", severity=Severity.ERROR)
def device_count(job: Job) -> Iterator[Finding | Unverified]:
    """The parallel sizes do not match the number of devices.

    ## What it does
    Compares the layout with the number of devices, as each framework does. Megatron and MindSpeed derive the
    data-parallel size, so the number of devices must be a multiple of `tensor * pipeline * context`. MindFormers in
    semi-auto mode reads the data-parallel size from the config, so `data * tensor * context * pipeline` must equal the
    number of devices. Expert parallelism is not a factor of either product.

    ## Why is this bad?
    Every rank has exactly one position in this layout. If the layout does not match the number of devices, creating the
    process groups fails on all ranks, after the job has waited in the queue.

    ## Example
    With 16 devices:

        parallel_config: {data_parallel: 4, model_parallel: 8, pipeline_stage: 1}

    Use instead:

        parallel_config: {data_parallel: 2, model_parallel: 8, pipeline_stage: 1}

    ## Fix safety
    Unsafe: a different data-parallel size changes the global batch size, unless the number of micro-batches can
    compensate for it.

    ## References
    Megatron-LM d98e8a6, megatron/training/arguments.py:432, validate_args; core_v0.12.1 :315
    MindFormers v1.5.0, mindformers/tools/check_rules.py:159, _check_parallel
    MindFormers 2.1.0, mindformers/pynative/distributed/parallel_dims.py:127, ParallelDims, and
    mindformers/pynative/trainer/trainer.py:575
    """
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
            upstream=job.upstream(COUNT_FEWER if world[0] < model else COUNT_UPSTREAM),
            layout=True,
        )


def _underived(world: int, degrees: tuple[int, ...], model: int) -> Message:
    tensor, pipeline, context = degrees
    shards = model // (tensor * pipeline * context)
    sharded = tensor * pipeline * context != model
    factors = Message(
        _COUNT_SHARDED if sharded else _COUNT_PLAIN, tensor=tensor, pipeline=pipeline, context=context, shards=shards
    )
    return Message.plural(
        world,
        "{world} device is not a multiple of {factors} = {model}",
        "{world} devices are not a multiple of {factors} = {model}",
        world=world,
        factors=factors,
        model=model,
    )


def _fits(job: Job, world: int) -> bool:
    """Whether a dense model would train on the devices that there are: then the layout may be too large instead."""
    sizes = known(job.plan.model.layers, job.plan.model.hidden)
    if sizes is None or job.plan.model.experts.raw not in (None, 0, 1):
        return False
    return bool(12 * sizes[0] * sizes[1] ** 2 * BYTES < world * SMALL_DEVICE)


def _more_nodes(job: Job, model: int) -> Fix | None:
    """As many nodes as the layout needs, if the number of nodes is written in the script and too small."""
    world, each = job.plan.layout.world, known(job.cluster.per_node)
    if each is None or each[0] <= 0 or model % each[0] or world.raw >= model or world.span is None:
        return None
    launch, nodes = job.documents[0].launch, model // each[0]
    if nodes > MOST_NODES or (model >= FAR * world.raw and _fits(job, world.raw)):
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
            "{data} data-parallel × {model} model-parallel ranks need {needed} device, but the job has {world}",
            "{data} data-parallel × {model} model-parallel ranks need {needed} devices, but the job has {world}",
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
        upstream=job.upstream(COUNT_UPSTREAM),
        layout=True,
    )


def _restate(job: Job, before: int, after: int) -> tuple[Fix, ...]:
    """A data-parallel size that fits. If changing the micro-batches as well would keep the global batch, it is unclear
    whether the size was a mistake or the job was changed on purpose, so both fixes are offered."""
    edits = job.plan.layout.data.becomes(after)
    if not edits:
        return ()
    batches = known(job.plan.batch.count)
    more = batches[0] * before if batches else 0
    if more and more % after == 0 and (others := job.plan.batch.count.becomes(more // after)):
        template = (
            "set the data-parallel size to {data} and the number of micro-batches to {count}, which keeps the "
            "global batch"
        )
        both = Message(template, data=after, count=more // after)
        return Fix(both, edits + others, offered=True, explained=True), Fix(
            f"set the data-parallel size to {after}", edits, offered=True
        )
    return (Fix(f"set the data-parallel size to {after}", edits),)


def _largest_first(sizes: tuple[Value, ...]) -> list[Value]:
    return sorted(sizes, key=lambda size: -size.raw)


@rule(id="devices-missing", severity=Severity.ERROR)
def devices_missing(job: Job) -> Iterator[Finding]:
    """The run requests more devices than are available.

    ## What it does
    Compares the devices that a front end requests in its own keys (`trainer.nnodes` x `trainer.n_gpus_per_node`,
    `--actor-num-nodes` x `--actor-num-gpus-per-node`, `cluster.num_nodes` x `cluster.gpus_per_node`) with the
    stated number (`--world-size`).

    ## Why is this bad?
    Ray places the workers of a run together. verl rejects a run that requests more devices than are available; other
    front ends wait for devices that never become available.

    ## Example
    With `--world-size 8`:

        trainer.nnodes=2 trainer.n_gpus_per_node=8

    Use instead

        trainer.nnodes=1 trainer.n_gpus_per_node=8

    ## Fix safety
    No fix: the stated cluster size may be the mistake.

    ## References
    verl 0.9.0, verl/single_controller/ray/base.py:235: Total available GPUs is less than total desired GPUs
    slime 0.3.1, slime/ray/placement_group.py:108: waits for the placement group of all devices
    NeMo RL 0.7.0, nemo_rl/distributed/virtual_cluster.py:789: Not enough GPUs available
    """
    there, asked = job.cluster.count, job.cluster.asked
    if not (isinstance(asked.raw, int) and isinstance(there.raw, int)):
        return
    if asked.raw > there.raw:
        yield Finding(
            Message(
                "the run requests {asked} devices, but only {there} are available", asked=asked.raw, there=there.raw
            ),
            span=job.place(asked),
        )


NODES_MISSING_FEWER = "the run requests {wanted:,} nodes with {each} devices, but the scheduler lists {there:,}"
SMALLER = "the run requests {each} devices per node, but the scheduler lists at most {most}"


@rule(id="nodes-missing", severity=Severity.NOTE, reads=("(site)",))
def nodes_missing(job: Job) -> Iterator[Finding | Unverified]:
    """The cluster does not have the nodes that the run requests.

    ## What it does
    With `--site --inventory FILE`, or `--site=slurm`, compares the number of nodes, and the number of devices on each
    node, with what the scheduler lists. The findings are notes, because a scheduler may hide partitions from you.

    ## Why is this bad?
    The job waits in the queue for nodes that do not exist.

    ## Example
    With 16 nodes of 8 devices in the inventory, under `--site`:

        preflight check run.sh --site --inventory nodes.json --nodes 32 --devices-per-node 8

    Instead, use at most 16 nodes.

    ## References
    Slurm, sinfo and scontrol, option --json
    """
    groups = job.site.nodes if job.site is not None else ()
    if not any(group.devices for group in groups):
        return
    if (each := known(job.cluster.per_node)) is None:
        yield Unverified("the number of devices per node is unknown")
        return
    most = max(group.devices for group in groups)
    there = sum(group.number for group in groups if group.devices >= each[0])
    count = known(job.cluster.count)
    wanted = -(-count[0] // each[0]) if count is not None and each[0] > 0 else 0
    if each[0] > most:
        yield Finding(Message(SMALLER, each=each[0], most=most), job.place(job.cluster.per_node))
    elif wanted > there:
        yield Finding(
            Message(NODES_MISSING_FEWER, wanted=wanted, each=each[0], there=there), job.place(job.cluster.count)
        )


@rule(id="world-sizes-disagree", severity=Severity.WARNING, after=("launcher-beyond-allocation",))
def world_sizes_disagree(job: Job) -> Iterator[Finding]:
    """Two places state different numbers of devices.

    ## What it does
    Compares the number of processes that the launcher starts with the devices that the job requests (`#SBATCH` lines,
    the options of srun).

    ## Why is this bad?
    If there are more processes than devices, some cannot start. If there are fewer, some of the devices that the job
    waited for in the queue stay idle. A program that starts its own processes on the devices, such as a Ray driver, is
    started once and not counted.

    ## Example
        #SBATCH --nodes=4 --gpus-per-node=8
        srun torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py
    Use instead:
        #SBATCH --nodes=4 --gpus-per-node=8
        srun torchrun --nnodes $SLURM_NNODES --nproc-per-node 8 pretrain_gpt.py

    ## References
    Slurm, sbatch(1), --nodes, --gpus-per-node
    PyTorch, torch/distributed/run.py: the world is nnodes x nproc_per_node
    """
    launch = job.documents[0].launch
    known = [
        count
        for count in (launch.world if launch is not None and not job.cluster.spawned else ())
        if isinstance(count.value, int) and not count.placeholder
    ]
    known += [Count(value.raw, value.span, value.note) for value in job.cluster.said if value.note == SOURCE]
    seen: dict[str, Count] = {count.source: count for count in reversed(known)}
    if len({count.value for count in seen.values()}) < 2:
        return
    first, other = known[0], next(count for count in known[1:] if count.value != known[0].value)
    span = first.span or job.start
    related = (Related(other.span, f"{other.value} devices"),) if other.span is not None else ()
    yield Finding(
        Message(
            "{one} starts {processes} processes, but {other} requests {devices} devices",
            one=first.source,
            processes=first.value,
            other=other.source,
            devices=other.value,
        ),
        span,
        related,
    )


GRID_UPSTREAM = {
    "megatron@0.12.1": "megatron/core/parallel_state.py:700",
    "megatron": "megatron/core/parallel_state.py:882",
}

_GRID_PLAIN = "expert tensor {tensor} × expert {expert} × pipeline {pipeline}"
_GRID_SHARDED = "expert tensor {tensor} × expert {expert} × pipeline {pipeline} × weight shards {held}"


@rule(
    id="expert-grid",
    severity=Severity.ERROR,
    frameworks=("megatron",),
    after=("device-count", "megatron/expert-parallel-without-experts"),
)
def expert_grid(job: Job) -> Iterator[Finding | Unverified]:
    """The expert layout does not match the number of devices.

    ## What it does
    Megatron lays experts out on a separate grid: the number of devices must be a multiple of `expert tensor * expert *
    pipeline`, times the number of additional weight shards if expert weights are sharded further. Expert tensor
    parallelism defaults to the tensor-parallel size; context parallelism is not a factor. The devices of an encoder
    with separate pipeline stages do not count. If the experts are not divisible by the expert-parallel size either,
    `experts-not-divisible` reports it instead.

    ## Why is this bad?
    The expert process groups cannot be created, and every rank fails at startup with a message about the decoder world
    size. A recipe that is scaled down from two nodes to one fails in this way even if its tensor-parallel,
    pipeline-parallel and context-parallel sizes still fit.

    ## Example
    With a tensor-parallel size of 4 and an expert-parallel size of 8, this layout needs 32 devices, but the run has 8.

        --tensor-model-parallel-size 4 --expert-model-parallel-size 8

    Use instead:

        --tensor-model-parallel-size 4 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1

    ## Fix safety
    Unsafe: the fix shards the experts differently.

    ## References
    Megatron-LM d98e8a6, megatron/core/parallel_state.py:882, initialize_model_parallel; core_v0.12.1 :700
    """
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
        fix = Fix("keep experts whole with an expert-tensor-parallel size of 1", edits)
    factors = Message(
        _GRID_SHARDED if held > 1 else _GRID_PLAIN, tensor=tensor, expert=expert, pipeline=pipeline, held=held
    )
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
        upstream=job.upstream(GRID_UPSTREAM),
        layout=True,
    )


def _uneven(job: Job, parallel: int) -> bool:
    """Whether the experts are not divisible by that size either: another rule reports the wrong size first."""
    experts = known(job.plan.model.experts)
    return experts is not None and experts[0] % parallel != 0
