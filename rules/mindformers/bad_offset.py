"""offset does not spread the layers over the pipeline stages.

## What it does
Lays the layers out as the framework does: `num_layers // (stages * chunks)` a stage, plus `offset`. An offset list has
one entry per stage (and one row per virtual chunk), and sums to the layers that are left over. DeepSeek-V3's
multi-token-prediction layer counts as one more in legacy models.

## Why is this bad?
The network refuses to be built on every rank, after the launch. A whole number other than 0 is worse: it is compared as
it is and then given to *every* stage, so that stages are laid out for layers that do not exist.

## Example
With 42 layers over 4 stages:

    model_config: {num_layers: 42, offset: 0}

Use instead:

    model_config: {num_layers: 42, offset: [0, 1, 1, 0]}

## Fix safety
Unsafe: another spread is another memory use per stage. The middle stages get the remainder, because the first and the
last hold embedding and loss.

## References
MindFormers v1.5.0, mindformers/models/utils.py:558, LayerSetting._check_inputs
MindFormers v1.7.0, mindformers/parallel_core/training_graph/transformer/utils.py:571
MindFormers 2.1.0, mindformers/parallel_core/training_graph/transformer/utils.py:565
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, known, rule
from preflight.dialects.mindformers.release_tables import read_at
from preflight.dialects.mindformers.stage_layers import OFFSET, Spread

_OLD = "mindformers/models/utils.py"
_NEW = "mindformers/parallel_core/training_graph/transformer/utils.py"
UPSTREAM = {
    "1.3.2": (_OLD, {"type": 98, "columns": 271, "rows": 274, "sum": 279}),
    "1.5.0": (_OLD, {"type": 165, "columns": 561, "rows": 564, "sum": 568}),
    "1.7.0": (_NEW, {"type": 161, "columns": 572, "rows": 575, "sum": 579}),
    "2.1.0": (_NEW, {"type": 160, "columns": 579, "rows": 582, "sum": 585, "negative": 595, "empty": 603}),
}
_SERVED = "mindformers/parallel_core/inference/utils.py:350"
_LAYERED = ("llama", "deepseek", "glm")


@rule(
    severity=Severity.ERROR,
    frameworks=("mindformers",),
    after=("mindformers/fewer-layers-than-stages", "mindformers/fewer-layers-than-chunks"),
)
def check(job: Job) -> Iterator[Finding]:
    laid = job.arguments.get("layering").raw
    if not isinstance(laid, Spread) or not _layered(job):
        return
    offset, layers = job.arguments.get(OFFSET), job.arguments.get("pipeline_layers")
    pipeline = job.plan.layout.pipeline
    place = offset if offset.written else layers
    related = (*(layers.related if offset.written else ()), *pipeline.related)
    if laid.fault:
        file, lines = UPSTREAM.get(read_at(job.target.version), UPSTREAM["1.5.0"])
        serving = job.arguments.get("kind").raw == "mcore" and job.arguments.get("training").raw is not True
        where = _SERVED if serving else f"{file}:{lines.get(laid.fault, lines['sum'])}"
        yield Finding(
            laid.message,
            job.place(place, layers, pipeline),
            related,
            _fix(job),
            key=place.key,
            upstream=where,
            layout=True,
        )
    elif laid.stages is not None and (total := sum(map(sum, laid.stages))) != layers.raw:
        message = Message(
            "offset {offset} is added to every stage: room for {total} layers is laid out, the model has {layers}",
            offset=offset.raw,
            total=total,
            layers=layers.raw,
        )
        yield Finding(message, job.place(offset), related, _fix(job), key=offset.key, severity=Severity.WARNING)


def _layered(job: Job) -> bool:
    """Whether the model lays its layers out this way:
    an mcore network that predicts does where it is really distributed."""
    if job.arguments.get("kind").raw == "mcore":
        spread = (
            job.arguments.get("use_parallel").raw is True and job.arguments.get("parallel_mode").raw == "stand_alone"
        )
        return job.arguments.get("training").raw is True or spread
    return job.plan.model.family.raw in _LAYERED


def _fix(job: Job) -> Fix | None:
    """An even spread with the remainder in the middle."""
    numbers = known(job.arguments.get("pipeline_layers"), job.plan.layout.pipeline)
    chunks = job.plan.layout.virtual.raw or 1
    if numbers is None or not isinstance(chunks, int):
        return None
    layers, pipeline = numbers
    if layers < pipeline * chunks:
        return None
    rest = layers % (pipeline * chunks)
    order = sorted(range(pipeline), key=lambda stage: abs(2 * stage - pipeline + 1))
    rows = []
    for _ in range(chunks):
        now = min(rest, pipeline)
        rows.append([int(stage in order[:now]) for stage in range(pipeline)])
        rest -= now
    value = 0 if not any(map(any, rows)) else rows[0] if chunks == 1 else rows
    edits = job.arguments.put(OFFSET, value)
    return Fix(f"set offset to {value}", edits, offered=True) if edits else None
