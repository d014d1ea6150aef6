"""The checkpoint cannot be loaded into this layout.

## What it does
With `--site`, compares tensor and pipeline parallel size with those of the run that saved a distributed checkpoint, and
looks at how the state of the optimizer is cut. Of a checkpoint of files by rank, it compares expert parallel size.

## Why is this bad?
Weights of a distributed checkpoint are loaded into any layout. The state of the distributed optimizer only is where it
was saved as `fully_reshardable` or `fully_sharded_model_space`: otherwise the run ends with
`RuntimeError: (TP, PP) mismatch`. Files by rank are only for the layout that saved them.

## Example
With a checkpoint of `--tensor-model-parallel-size 2` that was saved without `--ckpt-fully-parallel-save`, under
`--site`:

    --tensor-model-parallel-size 4 --use-distributed-optimizer --load /data/llama

Use instead the layout of the checkpoint, or its weights only:

    --tensor-model-parallel-size 4 --use-distributed-optimizer --load /data/llama --no-load-optim

## References
Megatron-LM core_v0.17.0, megatron/training/checkpointing.py, load_checkpoint, and
megatron/core/optimizer/distrib_optimizer.py, checkpoint_fully_reshardable_formats
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.saved_arguments import goes_on, is_known, loaded

FREE = ("fully_reshardable", "fully_sharded_model_space", "fsdp_dtensor")
BY_RANK = (
    "the run has expert parallel size {now}, the checkpoint, of files by rank, has {before}: the files of other ranks "
    "are looked for, and the run ends"
)
MISMATCH = (
    "the run has tensor {tensor} x pipeline {pipeline}, the checkpoint tensor {saved_tensor} x pipeline "
    "{saved_pipeline}: its optimizer state, {sharding}, cannot be loaded into another layout"
)


@rule(severity=Severity.ERROR, frameworks=("megatron",), reads=("(site)",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Another layout than the one that the checkpoint is bound to."""
    found, get = loaded(job), job.arguments.get
    if found is not None and found.kind == "torch":
        yield from _by_rank(job)
    if found is None or job.site is None or found.kind != "torch_dist" or found.release or not found.sharding:
        return
    saved = job.site.saved
    if (
        not goes_on(job)
        or not get("no_load_optim").known
        or get("no_load_optim").raw
        or saved.get("no_save_optim")
        or get("use_distributed_optimizer").raw is not True
    ):
        return
    tensor, pipeline = get("tensor_model_parallel_size"), get("pipeline_model_parallel_size")
    if not (is_known(tensor) and is_known(pipeline)):
        yield Unverified(tensor.because or pipeline.because)
        return
    before = tuple(saved.get(f"{name}_model_parallel_size", 1) for name in ("tensor", "pipeline"))
    if before == (tensor.raw, pipeline.raw) or found.sharding in FREE:
        return
    message = Message(
        MISMATCH,
        tensor=tensor.raw,
        pipeline=pipeline.raw,
        saved_tensor=before[0],
        saved_pipeline=before[1],
        sharding=found.sharding,
    )
    yield Finding(message, job.place(tensor, pipeline, job.arguments.given(found.argument)))


def _by_rank(job: Job) -> Iterator[Finding]:
    """Another number of groups of experts than the files are for."""
    now, found = job.arguments.get("expert_model_parallel_size"), loaded(job)
    before = job.site.saved.get("expert_model_parallel_size") if job.site is not None else None
    if found is not None and is_known(now) and type(before) is int and before != now.raw:
        place = job.place(now, job.arguments.given(found.argument))
        yield Finding(Message(BY_RANK, now=now.raw, before=before), place, key=now.key)
