"""--pipeline-num-transformer-layers does not fit the pipeline or the number of layers.

## What it does
Checks that the list has one entry per pipeline stage, that each entry has one number per virtual stage, and that the
numbers add up to no more than `--num-layers`.

## Why is this bad?
MindSpeed refuses anything else when it validates arguments: every rank the run fails at launch.

## Example
    --num-layers 8 --pipeline-model-parallel-size 4 --pipeline-num-transformer-layers [[3],[2],[3]]

Use instead:

    --num-layers 8 --pipeline-model-parallel-size 4 --pipeline-num-transformer-layers [[3],[2],[2],[1]]

## References
MindSpeed 028de58, mindspeed/features_manager/pipeline_parallel/unaligned_pineline_feature.py:48, validate_args
"""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.rules.mindspeed.numbers import Nested, nested
from preflight.source.finding import Kind

FILE = "mindspeed/features_manager/pipeline_parallel/unaligned_pineline_feature.py"


@rule(
    id="mindspeed/pipeline-layers-list",
    kind=Kind.RELEASE,
    severity=Severity.ERROR,
    frameworks=("mindspeed",),
    upstream=tuple(f"{FILE}:{line}" for line in (49, 55, 57, 65)),
    reads=("pipeline_num_transformer_layers",),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """One entry a stage, one number a virtual stage, together at most all layers."""
    arguments = job.arguments
    value = arguments.given("pipeline_num_transformer_layers")
    if value is None:
        return
    others = [
        arguments.get(name)
        for name in ("num_layers", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size")
    ]
    if unknown := next((v for v in (value, *others) if not v.known), None):
        yield Unverified(unknown.because)
        return
    if (numbers := known(value, *others[:2])) is None:
        return
    text, layers, pipeline = numbers
    if wrong := fault(nested(str(text)), layers, pipeline, others[2].raw or 1):
        message, line = wrong
        yield Finding(
            message,
            job.place(value),
            tuple(place for v in others[:2] for place in v.related),
            key=value.key,
            upstream=f"{FILE}:{line}",
            layout=True,
        )


def fault(stages: Nested | None, layers: int, pipeline: int, virtual: int) -> tuple[str, int] | None:
    """What is wrong with a list, and the line upstream that checks it."""
    if not stages or len(stages) != pipeline:
        return Message(
            "--pipeline-num-transformer-layers has {count} entries for {pipeline} pipeline stages",
            count=len(stages or ()),
            pipeline=pipeline,
        ), 49
    for stage in stages:
        if not isinstance(stage, list) or len(stage) != virtual:
            count = len(stage) if isinstance(stage, list) else 0
            one = "an entry of --pipeline-num-transformer-layers has {count} numbers for {virtual} virtual stage"
            more = "an entry of --pipeline-num-transformer-layers has {count} numbers for {virtual} virtual stages"
            return Message.plural(virtual, one, more, count=count, virtual=virtual), 57 if virtual > 1 else 55
    total = sum(n for stage in stages if isinstance(stage, list) for n in stage if isinstance(n, int))
    if total > layers:
        return Message(
            "--pipeline-num-transformer-layers adds up to {total}, the model has {layers} layers",
            total=total,
            layers=layers,
        ), 65
    return None
