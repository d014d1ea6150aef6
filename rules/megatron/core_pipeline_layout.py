"""A pipeline layout string that does not describe the model.

## What it does
Reads `--pipeline-model-parallel-layout`: E embedding, t decoder layer, m prediction layer, L loss, `|` between stages.
Checks that embedding comes first and loss last, each once, that decoder and prediction layers are as many as the model
has, and that all prediction layers stand after the decoder, in one stage, the last virtual stage of its rank.

## Why is this bad?
The model configuration is refused at start-up.

## Example
    --num-layers 12 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "Etttttt|tttttL"

The layout holds 11 decoder layers. Use instead `Etttttt|ttttttL`.

## References
Megatron-LM d98e8a6, megatron/core/transformer/pipeline_parallel_layer_layout.py:86, validate_layer_layout
MindSpeed 028de58, mindspeed/core/pipeline_parallel/pipeline_model_parallel_layout/layout.py:95, the same for Megatron 0.12.1
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, Unverified, rule
from preflight.dialects.megatron.layout_pattern import LETTERS, Layout, parse_layout
from preflight.rules.megatron.core_reading import read, typed

FILE = "megatron/core/transformer/pipeline_parallel_layer_layout.py"
LINES = (95, 98, 103, 106, 107, 112, 117, 123, 129, 315)
ASCEND = "mindspeed/core/pipeline_parallel/pipeline_model_parallel_layout/layout.py"
ASCEND_LINES = dict(zip(LINES, (101, 104, 109, 110, 111, 116, 121, 127, 133, 310), strict=True))
NAME = "pipeline_model_parallel_layout"
MINDSPEED = "mindspeed/core/pipeline_parallel/pipeline_model_parallel_layout/layout.py"  # brings the layout to core 0.12.1
MINDSPEED_LINES = (101, 104, 109, 110, 111, 116, 121, 127, 133, 310)
OWNED = (*(f"{FILE}:{line}" for line in LINES), *(f"{MINDSPEED}:{line}" for line in MINDSPEED_LINES))


@rule(severity=Severity.ERROR, id="megatron/pipeline-layout", frameworks=("megatron",), upstream=OWNED)
def check(job: Job) -> Iterator[Finding | Unverified]:
    mindspeed = "mindspeed" in job.versions
    if not typed(job, NAME):
        return
    if isinstance(values := read(job, NAME, "num_layers", "mtp_num_layers", "pipeline_model_parallel_size"), Unverified):
        yield values
        return
    text, layers, predictions, pipeline = values
    layout = parse_layout(str(text))
    said = _spelling(layout) or _ends(layout) or _counts(layout, layers, predictions) or _predictions(layout, pipeline, predictions)
    if said is None:
        return
    message, line = said
    value = typed(job, NAME)[0]
    place = f"{MINDSPEED}:{MINDSPEED_LINES[LINES.index(line)]}" if mindspeed else f"{FILE}:{line}"
    yield Finding(message, span=job.place(value), key=value.key, upstream=place, layout=True)


def _spelling(layout: Layout) -> tuple[str, int] | None:
    if layout.strange:
        return f"{layout.strange!r} is no layer of a pipeline layout; it knows {', '.join(LETTERS)}", 315
    return None


def _ends(layout: Layout) -> tuple[str, int] | None:
    letters = layout.letters
    if layout.too_long:
        return None
    if not letters.startswith("E"):
        return "the layout does not start with the embedding, E", 95
    if not letters.endswith("L"):
        return "the layout does not end with the loss, L", 98
    if (count := letters.count("E")) > 1:
        return f"the layout has {count} embeddings, a model has one", 103
    if (count := letters.count("L")) > 1:
        return f"the layout has {count} losses, a model has one", 106
    return None


def _counts(layout: Layout, layers: int | None, predictions: int | None) -> tuple[str, int] | None:
    if layers is None:
        return None
    if layout.too_long or layout.count("t") != layers:
        held = "far more" if layout.too_long else str(layout.count("t"))
        return f"the layout holds {held} decoder layers, the model has {layers}", 107
    if layout.count("m") != (predictions or 0):
        return f"the layout holds {layout.count('m')} prediction layers, the model has {predictions or 0}", 112
    return None


def _predictions(layout: Layout, pipeline: int, predictions: int | None) -> tuple[str, int] | None:
    chunks = layout.chunks(pipeline)
    if "m" not in layout.letters or chunks is None:
        return None
    if "t" in layout.letters[layout.letters.index("m") :]:
        return "a decoder layer stands after a prediction layer, m", 117
    if any("m" in stage for rank in chunks for stage in rank[:-1]):
        return "a prediction layer, m, stands in a virtual stage that is not the last of its rank", 123
    if any("m" in rank[-1] and rank[-1].count("m") != predictions for rank in chunks):
        return f"the {predictions} prediction layers are spread over several stages, they must stand in one", 129
    return None
