"""Checks of uneven distributions of layers over pipeline stages."""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, rule
from preflight.dialects.megatron.pipeline import LETTERS, Layout, parse_layout
from preflight.lint.upstream_evidence import dated
from preflight.rules.megatron.option_names import core, place_of, read, typed
from preflight.run.version_ranges import matches
from preflight.source.finding import Kind

NAME = "pipeline_model_parallel_layout"
# this release adds the layout option to core 0.12.1
MINDSPEED = "mindspeed/core/pipeline_parallel/pipeline_model_parallel_layout/layout.py"
MINDSPEED_LINES = {
    "006d16a920": 101,
    "abfd2985a6": 104,
    "bb46c0ce19": 109,
    "91e953ba1a": 110,
    "d7568ba15f": 111,
    "fa33235fa9": 116,
    "da503f3222": 121,
    "8062ba6b4e": 127,
    "f238bcd939": 133,
    "f7503f9ad6": 310,
}
"""The line of each check in MindSpeed, by the name that the evidence uses for the check in Megatron."""
OWNED = tuple(f"{MINDSPEED}:{line}" for line in MINDSPEED_LINES.values())


@rule(
    severity=Severity.ERROR,
    id="megatron/pipeline-layout",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    upstream=OWNED,
    reads=(NAME,),
)
def core_pipeline_layout(job: Job) -> Iterator[Finding | Unverified]:
    """The pipeline layout string does not match the model.

    ## What it does
    Reads `--pipeline-model-parallel-layout`, in which E stands for the embedding, t for a decoder layer, m for a
    prediction layer, L for the loss, and `|` separates stages. Checks that the embedding comes first and the loss last,
    each exactly once, and that the layout has as many decoder and prediction layers as the model. All prediction layers
    must come after the decoder, in one stage, which must be the last virtual stage of its rank.

    ## Why is this bad?
    Megatron rejects the model configuration at startup.

    ## Example
        --num-layers 12 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "Etttttt|tttttL"

    The layout contains 11 decoder layers. Use instead: `Etttttt|ttttttL`.

    ## References
    Megatron-LM d98e8a6, megatron/core/transformer/pipeline_parallel_layer_layout.py, validate_layer_layout
    MindSpeed 028de58, mindspeed/core/pipeline_parallel/pipeline_model_parallel_layout/layout.py:95, the same for Megatron
    0.12.1
    """
    mindspeed = "mindspeed" in job.versions
    if not typed(job, NAME):
        return
    if isinstance(text := read(job, NAME), Unverified):
        yield text
        return
    layout = parse_layout(str(text[0]))
    said = _spelling(layout) or _ends(layout)
    values = read(job, "num_layers", "mtp_num_layers", "pipeline_model_parallel_size")
    if said is None and isinstance(values, Unverified):
        yield values
        return
    layers, predictions, pipeline = values if isinstance(values, list) else (None, None, 1)
    if said is None and not mindspeed and matches(core(job), "<0.14"):
        said = _counts(layout, layers, layout.count("m")) or _without_predictions(layout)
    elif said is None:
        said = _counts(layout, layers, predictions) or _predictions(layout, pipeline, predictions)
    if said is None:
        return
    message, site = said
    value = typed(job, NAME)[0]
    place = f"{MINDSPEED}:{MINDSPEED_LINES[site]}" if mindspeed else place_of(job, site)
    fix = _predicted(job, str(text[0]), predictions)
    yield Finding(message, span=job.place(value), key=value.key, upstream=place, layout=fix is None, fix=fix)


def _predicted(job: Job, text: str, predictions: int | None) -> Fix | None:
    """The layout with its prediction layers moved in front of the loss, if nothing else is wrong with it."""
    layout, value = parse_layout(text), typed(job, NAME)[0]
    if not predictions or layout.strange or _ends(layout) or not text.endswith("L") or layout.count("m"):
        return None
    new = f"{text[:-1]}{'m' * predictions}L"
    edits = value.becomes(new) if layout.count("t") == job.arguments.get("num_layers").raw else ()
    return Fix(f"add the prediction layers to it: {new}", edits) if edits else None


def _spelling(layout: Layout) -> tuple[str, str] | None:
    if layout.strange:
        return Message(
            "{strange!r} is not a layer of a pipeline layout; it must be one of {letters}",
            strange=layout.strange,
            letters=tuple(LETTERS),
        ), "f7503f9ad6"
    return None


def _ends(layout: Layout) -> tuple[str, str] | None:
    letters = layout.letters
    if layout.too_long:
        return None
    if not letters.startswith("E"):
        return "the layout does not start with the embedding, E", "006d16a920"
    if not letters.endswith("L"):
        return "the layout does not end with the loss, L", "abfd2985a6"
    if (count := letters.count("E")) > 1:
        return Message("the layout has {count} embeddings, but a model has exactly one", count=count), "bb46c0ce19"
    if (count := letters.count("L")) > 1:
        return Message("the layout has {count} losses, but a model has exactly one", count=count), "91e953ba1a"
    return None


def _counts(layout: Layout, layers: int | None, predictions: int | None) -> tuple[str, str] | None:
    if layers is None:
        return None
    if layout.too_long or layout.count("t") != layers:
        held = layout.count("t")
        many, some = (
            "the layout has far more decoder layers than the model's {layers}",
            "the layout contains {held} decoder layers, but the model has {layers}",
        )
        return Message(many if layout.too_long else some, held=held, layers=layers), "d7568ba15f"
    if layout.count("m") != (predictions or 0):
        held, wanted = layout.count("m"), predictions or 0
        return Message(
            "the layout contains {held} prediction layers, but the model has {wanted}", held=held, wanted=wanted
        ), "fa33235fa9"
    return None


def _without_predictions(layout: Layout) -> tuple[str, str] | None:
    """Core 0.13 accepts the letter of a prediction layer, but does not build any."""
    return ("this release cannot place a prediction layer (m) in a layout", "9c2470ea47") if layout.count("m") else None


def _predictions(layout: Layout, pipeline: int, predictions: int | None) -> tuple[str, str] | None:
    chunks = layout.chunks(pipeline)
    if "m" not in layout.letters or chunks is None:
        return None
    if "t" in layout.letters[layout.letters.index("m") :]:
        return "a decoder layer follows a prediction layer (m), but prediction layers must come last", "da503f3222"
    if any("m" in stage for rank in chunks for stage in rank[:-1]):
        return "a prediction layer (m) is in a virtual stage that is not the last of its rank", "8062ba6b4e"
    if any("m" in rank[-1] and rank[-1].count("m") != predictions for rank in chunks):
        return Message(
            "the {predictions} prediction layers are spread over several stages, but must be in a single stage",
            predictions=predictions,
        ), "f238bcd939"
    return None


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
"""The upstream statements, under the names used in the evidence; before 0.13 the second also covers the first."""
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
def core_uneven_pipeline(job: Job) -> Iterator[Finding | Unverified]:
    """The middle pipeline stages cannot evenly share the layers that the first and last stages leave.

    ## What it does
    With `--decoder-first-pipeline-num-layers` or `--decoder-last-pipeline-num-layers`, the other stages share the
    remaining layers. Checks that they share them evenly, that each share is divisible by the number of virtual stages,
    and, from 0.16 on, that there are remaining layers exactly if there are stages in between. From 0.16 on, the sum
    must also be right if there is only one stage.

    ## Why is this bad?
    Megatron rejects the model configuration at startup.

    ## Example
        --num-layers 32 --pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 7

    25 layers are left for 3 stages. Use instead: a first stage with 8 or 5 layers, so that 24 or 27 layers are left.

    ## References
    Megatron-LM d98e8a6, megatron/core/transformer/transformer_config.py
    """
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
    first_core = matches(core(job), "<0.11")  # the layers of both ends are subtracted before any are counted
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
    """The fault in the layers and stages in the middle, and the upstream check."""
    if zero and stages == 0:
        return Message("; this release needs at least one"), sites[0]
    if exact and bool(middle) != bool(stages):
        return "", sites[0]
    if stages and middle % stages:
        return Message("; they cannot be split evenly"), sites[1]
    if stages and virtual and (middle // stages) % virtual:
        return Message(
            ": {each} each are not divisible by {virtual} virtual stages", each=middle // stages, virtual=virtual
        ), sites[2]
    return None
