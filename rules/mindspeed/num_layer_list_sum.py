"""--num-layer-list does not fit the pipeline or the number of layers.

## What it does
Checks that `--num-layer-list` has one number per pipeline stage (one more with `--layerwise-disaggregated-training`,
whose first stage holds the first and the last layers), that the numbers add up to `--num-layers`, and that neither the
embedding nor the loss is counted as a further layer.

## Why is this bad?
MindSpeed-LLM refuses a list of another length when it validates arguments, and another sum when it builds the model
config: every rank the run fails at launch.

## Example
    --num-layers 10 --pipeline-model-parallel-size 4 --num-layer-list 3,3,2,1

Use instead:

    --num-layers 10 --pipeline-model-parallel-size 4 --num-layer-list 3,3,2,2

## References
MindSpeed-LLM c77308a, mindspeed_llm/features_manager/pipeline_parallel/num_layer_list.py:27,
mindspeed_llm/training/arguments.py:146,
mindspeed_llm/core/layerwise_disaggregated_training/initialize.py:104
"""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.rules.mindspeed.numbers import entries
from preflight.source.finding import Kind

LENGTH = "mindspeed_llm/features_manager/pipeline_parallel/num_layer_list.py:28"
BLOCK = "mindspeed_llm/features_manager/transformer/transformer_block.py:25"
EVEN = "megatron/training/arguments.py:490"
"""Megatron takes the length of the list for the number of layers, and wants it even over the stages first."""
SUM = "mindspeed_llm/training/arguments.py:147"
SPLIT = "mindspeed_llm/core/layerwise_disaggregated_training/initialize.py:105"

_LENGTH = "--num-layer-list has {count} numbers for {pipeline} pipeline stages"
_DISAGGREGATED = (
    "--num-layer-list has {count} numbers; --layerwise-disaggregated-training needs one more than pipeline stages, "
    "{wanted}"
)
_COUNTED = (
    "--num-layer-list does not work with counting embedding or loss as layers: {pipeline} + {counted} are not divisible "
    "by {pipeline} stages"
)
_SUM = "--num-layer-list adds up to {total}, the model has {count} layers"


@rule(
    id="mindspeed-llm/num-layer-list-sum",
    kind=Kind.RELEASE,
    severity=Severity.ERROR,
    frameworks=("mindspeed-llm",),
    after=("mindspeed-llm/layer-list-pipeline",),
    upstream=(LENGTH, BLOCK, SUM, SPLIT),
    reads=("num_layer_list",),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """One number a stage, together all layers."""
    arguments = job.arguments
    value = arguments.given("num_layer_list")
    if value is None:
        return
    layers, stages, split = (
        arguments.get(name)
        for name in ("num_layers", "pipeline_model_parallel_size", "layerwise_disaggregated_training")
    )
    if (numbers := known(value, layers, stages)) is None or not split.known:
        yield Unverified(next((v.because for v in (value, layers, stages, split) if not v.known), ""))
        return
    text, count, pipeline = numbers
    if pipeline < 1:
        return
    disaggregated = bool(split.raw)  # releases before 26.0 lack it
    listed = entries(text)
    if listed is None:
        message = Message("--num-layer-list {text!r} is not a list of numbers", text=text)
        yield Finding(message, job.place(value), key=value.key, upstream=SUM)
    elif disaggregated and len(listed) != pipeline + 1:
        related = (*stages.related, *split.related)
        message = Message(_DISAGGREGATED, count=len(listed), wanted=pipeline + 1)
        yield Finding(message, job.place(value), related, key=value.key, upstream=SPLIT, layout=True)
    elif not disaggregated and len(listed) != pipeline:
        where = LENGTH if len(listed) % pipeline == 0 else EVEN
        message = Message(_LENGTH, count=len(listed), pipeline=pipeline)
        yield Finding(message, job.place(value), stages.related, key=value.key, upstream=where, layout=True)
    elif (counted := _counted(job)) is None:
        yield Unverified("whether embedding and loss count as layers")
    elif counted % pipeline:
        message = Message(_COUNTED, pipeline=pipeline, counted=counted)
        yield Finding(message, job.place(value), stages.related, key=value.key, upstream=EVEN)
    elif sum(listed) != count:
        message = Message(_SUM, total=sum(listed), count=count)
        yield Finding(message, job.place(value), layers.related, key=value.key, upstream=SUM)


def _counted(job: Job) -> int | None:
    """How many further layers Megatron counts, where it looks at a plain pipeline; None when that is not known."""
    if any(
        job.arguments.get(name).raw is not None
        for name in ("num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank")
    ):
        return 0
    flags = [job.arguments.get(f"account_for_{part}_in_pipeline_split") for part in ("embedding", "loss")]
    return sum(flag.raw is True for flag in flags) if all(flag.known for flag in flags) else None
