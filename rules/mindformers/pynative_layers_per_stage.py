"""The layers assigned to the pipeline stages are invalid, or do not cover each layer of the model exactly once.

## What it does
Checks `pipeline_parallel_layers_per_stage` if the pipeline-parallel size is greater than 1. With `auto`, the number of
layers must be divisible by the number of virtual stages. A list needs one entry per stage, and each entry needs one
range per chunk. The rule then arranges the ranges in the order in which the stages run (chunk by chunk, stage by
stage), and checks that they cover the layers from 0 to the number of layers minus 1.

## Why is this bad?
With a wrong form, the run crashes while the stages are built. A gap, an overlap or a missing end is worse, because the
framework does not check the ranges and the model trains without these layers or with copies of them.

## Example
With 16 layers and two stages:
    pipeline_parallel_layers_per_stage: ["0-6", "8-15"]
Use instead:
    pipeline_parallel_layers_per_stage: ["0-7", "8-15"]

## References
MindFormers 2.1.0, mindformers/pynative/distributed/pipeline_parallel.py:140-212, PpLayerSetting
MindFormers 2.1.0, mindformers/pynative/transformers/transformer_block.py:262, TransformerBlock
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Value, known, rule
from preflight.dialects.mindformers.pynative_derived import layer_ranges

_PIPELINE = "mindformers/pynative/distributed/pipeline_parallel.py"
_BLOCK = "mindformers/pynative/transformers/transformer_block.py:262"


@rule(severity=Severity.ERROR, sometimes=(Severity.WARNING,), frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    a = job.arguments
    value = a.get("parallelism.pipeline_parallel_layers_per_stage")
    numbers = known(
        job.plan.layout.pipeline, a.get("parallelism.pipeline_parallel_interleave_num"), job.plan.model.layers
    )
    if (
        numbers is None
        or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers)
        or numbers[0] <= 1
        or numbers[1] < 1
    ):
        return
    pipeline, chunks, layers = numbers
    if job.arguments.get("model.model_type").raw == "qwen3" or a.get("distributed").raw is not True:
        return
    if value.raw == "auto":
        if layers % (pipeline * chunks):
            message = Message(
                "{layers} layers are not divisible by {pipeline} stages × {chunks} chunks; list the layers of each "
                "stage",
                layers=layers,
                pipeline=pipeline,
                chunks=chunks,
            )
            yield _finding(job, value, message, f"{_PIPELINE}:198")
        return
    fault = _form(value.raw, pipeline, chunks)
    if fault is not None:
        yield _finding(job, value, fault[0], f"{_PIPELINE}:{fault[1]}")
        return
    placed = layer_ranges(value.raw, pipeline, chunks)
    if placed is not None:
        yield from _coverage(job, value, [one for row in placed for one in row], layers)


def _finding(
    job: Job, value: Value, message: str, upstream: str, severity: Severity | None = None, fix: Fix | None = None
) -> Finding:
    pipeline = job.plan.layout.pipeline
    return Finding(
        message, job.place(value, pipeline), pipeline.related, fix, value.key, upstream, severity, layout=True
    )


def _form(raw: object, pipeline: int, chunks: int) -> tuple[str, int] | None:
    """Why the framework rejects a list, and on which line."""
    if raw is None:
        return Message(
            "{pipeline} stages need pipeline_parallel_layers_per_stage to be auto or a list, not null",
            pipeline=pipeline,
        ), 157
    if isinstance(raw, str):
        return Message(
            ("pipeline_parallel_layers_per_stage is {raw!r}; it must be a list or auto (with this exact spelling)"),
            raw=raw,
        ), 158
    if not isinstance(raw, list):
        return None
    if len(raw) != pipeline:
        return Message(
            "pipeline_parallel_layers_per_stage has length {count}, but pipeline_parallel is {pipeline}",
            count=len(raw),
            pipeline=pipeline,
        ), 158
    for stage, text in enumerate(raw):
        if not isinstance(text, str):
            return Message(
                ("stage {stage} is {text}; a stage must be a string such as '0-7'"), stage=stage, text=text
            ), 164
        parts = text.split(",")
        if len(parts) != chunks:
            ranges = Message.plural(len(parts), "{count} range", "{count} ranges", count=len(parts))
            message = "stage {stage} has {ranges} ({text!r}), but pipeline_parallel_interleave_num is {chunks}"
            return Message(message, stage=stage, ranges=ranges, text=text, chunks=chunks), 166
        for part in parts:
            if (fault := _range(stage, part)) is not None:
                return fault
    return None


def _range(stage: int, part: str) -> tuple[str, int] | None:
    ends = [end.strip() for end in part.split("-")]
    if len(ends) > 2:
        return Message(
            "stage {stage} has the range {part!r}; a range is 'first-last' or one layer", stage=stage, part=part.strip()
        ), 188
    if not all(end.isdigit() for end in ends):
        return Message(
            "stage {stage} has the range {part!r}; its ends must be layer numbers", stage=stage, part=part.strip()
        ), 178
    if int(ends[0]) > int(ends[-1]):
        return Message(
            "stage {stage} has the range {part!r}, which runs backwards", stage=stage, part=part.strip()
        ), 183
    return None


def _coverage(job: Job, value: Value, ranges: list[tuple[int, int]], layers: int) -> Iterator[Finding]:
    """Checks that the ranges, in the order in which the stages run, are 0 .. layers - 1."""
    beyond = next((one for one in ranges if one[1] >= layers), None)
    if beyond is not None:
        yield _finding(
            job,
            value,
            Message(
                "layers {first}-{last} are given to a stage, but the last layer of the model is {most}",
                first=beyond[0],
                last=beyond[1],
                most=layers - 1,
            ),
            _BLOCK,
        )
        return
    expected = 0
    for low, high in ranges:
        if low != expected:
            what = (
                Message("{layers} in no stage", layers=_layers(expected, low - 1))
                if low > expected
                else Message("layer {low} is repeated or out of order", low=low)
            )
            message = Message(
                (
                    "{what}: the stages do not contain each of the {layers} layers exactly once and in order, but "
                    "training silently continues"
                ),
                what=what,
                layers=layers,
            )
            yield _finding(job, value, message, f"{_PIPELINE}:194", Severity.WARNING)
            return
        expected = high + 1
    if expected < layers:
        message = Message(
            "{layers} in no stage, so the model is silently trained with fewer layers",
            layers=_layers(expected, layers - 1),
        )
        yield _finding(job, value, message, f"{_PIPELINE}:194", Severity.WARNING)


def _layers(first: int, last: int) -> str:
    return (
        Message("layer {first} is", first=first)
        if first == last
        else Message("layers {first}-{last} are", first=first, last=last)
    )
