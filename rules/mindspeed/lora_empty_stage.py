"""With LoRA, a pipeline stage or virtual stage holds nothing but empty layers.

## What it does
With `--lora-target-modules` and `--noop-layers`, checks that no pipeline stage, and no virtual stage of
`--num-layers-per-virtual-pipeline-stage` layers, consists of empty layers alone.

## Why is this bad?
Such a stage has no parameter to adapt. MindSpeed-LLM refuses it before arguments are validated: every rank dies at
launch.

## Example
Stage 3 of 4 holds the layers 6 and 7, which are both empty.

    --num-layers 8 --pipeline-model-parallel-size 4 --noop-layers 6,7 --lora-target-modules linear_qkv

Use instead:

    --num-layers 8 --pipeline-model-parallel-size 4 --noop-layers 5,7 --lora-target-modules linear_qkv

## References
MindSpeed-LLM c77308a, mindspeed_llm/training/utils.py:1180 and :1194, check_pipeline_config, which
mindspeed_llm/features_manager/megatron_basic/training_basic.py:62 calls
"""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.rules.mindspeed.numbers import entries
from preflight.run.versions import matches
from preflight.source.finding import Kind

FILE = "mindspeed_llm/training/utils.py"
SINCE = ">=26"


@rule(
    id="mindspeed-llm/lora-empty-stage",
    kind=Kind.RELEASE,
    severity=Severity.ERROR,
    frameworks=("mindspeed-llm",),
    upstream=(f"{FILE}:1180", f"{FILE}:1194"),
    reads=("noop_layers",),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Every stage needs a layer to adapt."""
    arguments = job.arguments
    noop, targets = arguments.given("noop_layers"), arguments.given("lora_target_modules")
    if noop is None or targets is None or not matches(job.versions["mindspeed-llm"], SINCE):
        return
    layers, stages, chunk = (
        arguments.get(name)
        for name in ("num_layers", "pipeline_model_parallel_size", "num_layers_per_virtual_pipeline_stage")
    )
    if (numbers := known(noop, targets, layers, stages)) is None or not chunk.known:
        yield Unverified(next((v.because for v in (noop, targets, layers, stages, chunk) if not v.known), ""))
        return
    text, named, count, pipeline = numbers
    empty = frozenset(entries(text) or ())
    if not named or pipeline < 1:
        return
    if (found := first_empty(empty, count // pipeline, pipeline, chunk.raw or 0)) is not None:
        where, first, last, line = found
        held = (
            Message("layer {first} alone, one", first=first)
            if first == last
            else Message("layers {first} to {last}, all", first=first, last=last)
        )
        message = Message(
            "with LoRA no stage may be empty, but {where} holds {held} of --noop-layers", where=where, held=held
        )
        yield Finding(message, job.place(noop), stages.related, key=noop.key, upstream=f"{FILE}:{line}", layout=True)


def first_empty(empty: frozenset[int], per_stage: int, pipeline: int, chunk: int) -> tuple[str, int, int, int] | None:
    """The first stage or virtual stage without a real layer: its name, its first and last layer,
    and the line that refuses it."""
    for stage in range(pipeline if per_stage > 0 else 0):
        begin = stage * per_stage
        if empty.issuperset(range(begin, begin + per_stage)):
            return Message("pipeline stage {stage}", stage=stage), begin, begin + per_stage - 1, 1180
        for part in range(per_stage // chunk if chunk > 0 else 0):
            first = begin + part * chunk
            if empty.issuperset(range(first, first + chunk)):
                return (
                    Message("virtual stage {part} of pipeline stage {stage}", part=part, stage=stage),
                    first,
                    first + chunk - 1,
                    1194,
                )
    return None
