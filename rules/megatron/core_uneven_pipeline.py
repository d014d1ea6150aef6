"""The first and last pipeline stages leave the stages between them a number of layers they cannot share.

## What it does
With `--decoder-first-pipeline-num-layers` or `--decoder-last-pipeline-num-layers` the other stages share what is left.
Checks that there are layers for them exactly when there are stages between, that they share evenly, and that each share
divides over the virtual stages. The sum must also be right with a single stage.

## Why is this bad?
The model configuration is refused at start-up.

## Example
    --num-layers 32 --pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 7

25 layers are left for 3 stages. Use instead a first stage of 8 or 5 layers, so that 24 or 27 are left.

## References
Megatron-LM d98e8a6, megatron/core/transformer/transformer_config.py:2342, :2350, :2364; core_v0.12.1 :825, :837
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, Unverified, rule
from preflight.rules.megatron.core_names import CONFIG
from preflight.rules.megatron.core_reading import core, read, typed

FIRST, LAST = "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"
NAMES = ("num_layers", "pipeline_model_parallel_size", FIRST, LAST, "virtual_pipeline_model_parallel_size", "pipeline_model_parallel_layout")
LINES = {"0.20.0": (2342, 2350, 2364), "0.12.1": (825, 825, 837)}
EARLIER = ("first-stage-empty", "last-stage-empty", "first-stage-over-virtual-stages", "last-stage-over-virtual-stages", "counted-embedding-with-uneven-stages")


@rule(
    severity=Severity.ERROR,
    id="megatron/uneven-pipeline",
    frameworks=("megatron",),
    after=tuple(f"megatron/{id}" for id in EARLIER),
    upstream=tuple(f"{CONFIG}:{line}" for line in (2342, 2350, 2364)),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    if not typed(job, FIRST, LAST):
        return
    if isinstance(values := read(job, *NAMES), Unverified):
        yield values
        return
    layers, pipeline, first, last, virtual, layout = values
    if layout is not None or layers is None:
        return
    middle = layers - (first or 0) - (last or 0)
    stages = pipeline - (first is not None) - (last is not None)
    lines = LINES.get(core(job), LINES["0.20.0"])
    if (said := _fault(middle, stages, virtual, lines, zero=core(job) == "0.12.1")) is None:
        return
    message, line = said
    places = typed(job, FIRST, LAST, "num_layers", "pipeline_model_parallel_size")
    related = tuple(place for value in places[1:] for place in value.related)
    ends = " and ".join(f"{count} in the {name} stage" for name, count in (("first", first), ("last", last)) if count is not None)
    text = f"with {ends}, {middle} of {layers} layers are left for {stages} stages in between{message}"
    yield Finding(text, span=job.place(*places), related=related, key=places[0].key, upstream=f"{CONFIG}:{line}", layout=True)


def _fault(middle: int, stages: int, virtual: int | None, lines: tuple[int, int, int], zero: bool) -> tuple[str, int] | None:
    """What is wrong with the layers and stages in the middle, and where upstream says so."""
    if zero and stages == 0:
        return ", and this version cannot do without any", lines[0]
    if not zero and bool(middle) != bool(stages):
        return "", lines[0]
    if stages and middle % stages:
        return ", which cannot share them evenly", lines[1]
    if stages and virtual and (middle // stages) % virtual:
        return f": {middle // stages} each do not divide over {virtual} virtual stages", lines[2]
    return None
