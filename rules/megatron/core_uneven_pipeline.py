"""The first and last pipeline stages leave the stages between them a number of layers they cannot share.

## What it does
With `--decoder-first-pipeline-num-layers` or `--decoder-last-pipeline-num-layers` the other stages share what is left.
Checks that they share evenly, that each share divides over the virtual stages, and from 0.16 on that there are layers
for them exactly when there are stages between. The sum must then also be right with a single stage.

## Why is this bad?
The model configuration is refused at start-up.

## Example
    --num-layers 32 --pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 7

25 layers are left for 3 stages. Use instead a first stage of 8 or 5 layers, so that 24 or 27 are left.

## References
Megatron-LM d98e8a6, megatron/core/transformer/transformer_config.py
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.lint.evidence import dated
from preflight.rules.megatron.core_reading import core, place_of, read, typed
from preflight.run.versions import matches
from preflight.source.finding import Kind

FIRST, LAST = "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"
NAMES = (
    "num_layers",
    "pipeline_model_parallel_size",
    FIRST,
    LAST,
    "virtual_pipeline_model_parallel_size",
    "pipeline_model_parallel_layout",
)
SITES = ("db935b680b", "5d219a862e", "c3cafd22a5")
"""The statements of upstream, as the evidence names them; before 0.13 the second stands for the first as well."""
EARLIER = (
    "first-stage-empty",
    "last-stage-empty",
    "first-stage-over-virtual-stages",
    "last-stage-over-virtual-stages",
    "counted-embedding-with-uneven-stages",
)


@rule(
    severity=Severity.ERROR,
    id="megatron/uneven-pipeline",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    after=tuple(f"megatron/{id}" for id in EARLIER),
    reads=(FIRST, LAST),
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
    old, exact = matches(core(job), ">=0.11,<0.13"), matches(core(job), ">=0.16")
    sites = (SITES[1], *SITES[1:]) if old else SITES
    first_core = matches(core(job), "<0.11")  # each end takes its layers before any are counted
    if (said := _fault(middle, stages, None if first_core else virtual, sites, zero=old, exact=exact)) is None:
        return
    message, site = said
    places = typed(job, FIRST, LAST, "num_layers", "pipeline_model_parallel_size")
    related = tuple(place for value in places[1:] for place in value.related)
    beginning = (Message("{count} in the first stage", count=first),) if first is not None else ()
    end = (Message("{count} in the last stage", count=last),) if last is not None else ()
    text: str = Message(
        "with {ends:and}, {middle} of {layers} layers are left for {stages} stages in between{fault}",
        ends=(*beginning, *end),
        middle=middle,
        layers=layers,
        stages=stages,
        fault=message,
    )
    text, severity = dated(job, text, "megatron", "0.16" if exact and site == SITES[0] else "")
    place = place_of(job, site)
    yield Finding(
        text, job.place(*places), related=related, key=places[0].key, upstream=place, layout=True, severity=severity
    )


def _fault(
    middle: int, stages: int, virtual: int | None, sites: tuple[str, str, str], zero: bool, exact: bool
) -> tuple[str, str] | None:
    """What is wrong with the layers and stages in the middle, and where upstream checks it."""
    if zero and stages == 0:
        return Message("; this release needs at least one"), sites[0]
    if exact and bool(middle) != bool(stages):
        return "", sites[0]
    if stages and middle % stages:
        return Message("; they do not divide evenly"), sites[1]
    if stages and virtual and (middle // stages) % virtual:
        return Message(
            ": {each} each are not divisible by {virtual} virtual stages", each=middle // stages, virtual=virtual
        ), sites[2]
    return None
