"""Empty layers or chunks are where the forward-backward overlap does not allow them.

## What it does
With `--moe-fb-overlap` on virtual stages, checks that `--noop-layers` are all in the last virtual stage, and that every
chunk of `--pipeline-model-parallel-layout` holds a decoder layer.

## Why is this bad?
The overlap pairs a layer's forward with another's backward; an empty chunk has neither. MindSpeed refuses the run at
launch. It looks at "the first" element of an unordered set, so whether a list passes can depend on the numbers in it.

## Example
    --num-layers 16 --num-layers-per-virtual-pipeline-stage 2 --moe-fb-overlap --noop-layers 12,15

Use instead:

    --num-layers 16 --num-layers-per-virtual-pipeline-stage 2 --moe-fb-overlap --noop-layers 14,15

## References
MindSpeed 028de58, mindspeed/features_manager/moe/fb_overlap.py:134 and :65
"""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.rules.mindspeed.numbers import entries
from preflight.source.finding import Kind

FILE = "mindspeed/features_manager/moe/fb_overlap.py"
EARLY = "--noop-layers names {early}, but --moe-fb-overlap needs them in the last virtual stage, from {first} on"


@rule(
    id="mindspeed/fb-overlap-layers",
    kind=Kind.RELEASE,
    severity=Severity.ERROR,
    frameworks=("mindspeed",),
    upstream=(f"{FILE}:65", f"{FILE}:135"),
    reads=("moe_fb_overlap",),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Every chunk needs a real layer."""
    arguments = job.arguments
    if (on := known(arguments.get("moe_fb_overlap"))) is None or not on[0]:
        return
    if (layout := arguments.given("pipeline_model_parallel_layout")) is not None:
        chunks = arguments.get("layers_per_chunk")
        if (rows := known(chunks)) is not None and any(count == 0 for row in rows[0] for count in row):
            message = (
                "a chunk of --pipeline-model-parallel-layout holds no decoder layer, which --moe-fb-overlap cannot run"
            )
            yield Finding(message, job.place(layout), key=layout.key, upstream=f"{FILE}:65", layout=True)
        return
    if (noop := arguments.given("noop_layers")) is None or arguments.get("schedules_method").raw == "dualpipev":
        return
    values = (
        noop,
        arguments.get("num_layers"),
        arguments.get("num_layers_per_virtual_pipeline_stage"),
        arguments.get("schedules_method"),
    )
    if (sizes := known(*values[:3])) is None or not values[3].known:
        if unknown := next((value for value in values if not value.known), None):
            yield Unverified(unknown.because)
        return
    text, layers, virtual = sizes
    numbers = entries(text) or ()
    early = [n for n in numbers if n < layers - virtual]
    if early:
        first = next(iter(set(numbers)))  # what upstream takes for the first: small numbers are not hashed at random
        yield Finding(
            Message(EARLY, early=tuple(early), first=layers - virtual),
            job.place(noop),
            key=noop.key,
            upstream=f"{FILE}:135",
            severity=Severity.ERROR if first in early else Severity.WARNING,
        )
