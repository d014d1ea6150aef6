"""A layer named by --noop-layers does not exist.

## What it does
Checks that `--noop-layers` is a list of layer numbers, separated by commas, each at least 0 and below `--num-layers`.

## Why is this bad?
MindSpeed reads the list when it validates arguments and refuses anything else: every rank the run fails at launch. Empty layers
are counted in `--num-layers`, so a 61-layer model padded to 64 names 61, 62 and 63.

## Example
    --num-layers 64 --noop-layers 62,63,64

Use instead:

    --num-layers 64 --noop-layers 61,62,63

## References
MindSpeed 028de58, mindspeed/features_manager/pipeline_parallel/noop_layers.py:42, post_validate_args
"""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.rules.mindspeed.numbers import entries
from preflight.source.finding import Kind

FILE = "mindspeed/features_manager/pipeline_parallel/noop_layers.py"


@rule(
    id="mindspeed/noop-layers-range",
    kind=Kind.RELEASE,
    severity=Severity.ERROR,
    frameworks=("mindspeed",),
    upstream=(f"{FILE}:43", f"{FILE}:46"),
    reads=("noop_layers",),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Layer numbers must exist."""
    value = job.arguments.given("noop_layers")
    automated = job.arguments.get("automated_pipeline")
    if value is None or automated.raw is True:
        return
    layers = job.arguments.get("num_layers")
    if (both := known(value, layers)) is None or not automated.known:
        yield Unverified(value.because or layers.because or automated.because)
        return
    text, count = both
    numbers = entries(text)
    beyond = [n for n in numbers or () if n >= count]
    if numbers is not None and not beyond:
        return
    wrong = (
        Message("--noop-layers names {beyond}, but layers run from 0 to {last}", beyond=tuple(beyond), last=count - 1)
        if beyond
        else Message("--noop-layers {text!r} is not a list of layer numbers", text=text)
    )
    place = f"{FILE}:{46 if beyond else 43}"
    yield Finding(wrong, job.place(value), layers.related, key=value.key, upstream=place)
