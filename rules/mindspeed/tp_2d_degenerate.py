"""One of the two directions of 2-D tensor parallelism has a single rank.

## What it does
Warns about `--tp-2d` where `--tp-x` or `--tp-y` is 1: with 8 x 1 all communication runs in one direction.

## Why is this bad?
The documents ask for both sizes above 1; the validator does not check it. The run pays for the 2-D linears and gains
nothing over one-dimensional tensor parallelism. A prime tensor parallel size has no other pair.

## Example
    --tensor-model-parallel-size 8 --tp-2d --tp-x 8 --tp-y 1

Use instead:

    --tensor-model-parallel-size 8 --tp-2d --tp-x 4 --tp-y 2

## Fix safety
Unsafe: other sizes communicate differently; the loss stays the same up to rounding.

## References
MindSpeed 028de58, docs/zh/features/tensor-parallel-2d.md:73
"""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.rules.mindspeed.tp_2d_sizes import repairs
from preflight.source.finding import Kind

DOCUMENT = "docs/zh/features/tensor-parallel-2d.md:73"


@rule(id="mindspeed/tp-2d-degenerate", kind=Kind.RELEASE, severity=Severity.WARNING, frameworks=("mindspeed",), upstream=(DOCUMENT,))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Both sizes should be above 1."""
    arguments = job.arguments
    switch = arguments.get("tp_2d")
    if switch.known and not switch.raw:
        return
    values = tuple(arguments.get(name) for name in ("tp_x", "tp_y", "tensor_model_parallel_size"))
    if (numbers := known(switch, *values)) is None:
        yield Unverified(next((v.because for v in (switch, *values) if not v.known), ""))
        return
    _, x, y, tensor = numbers
    if x * y != tensor or min(x, y) != 1:
        return
    fixes = tuple(repairs(arguments, tensor, (x, y)))
    yield Finding(
        "--tp-2d does nothing at tensor parallel 1" if tensor == 1 else Message("2-D tensor parallel {x} x {y} splits in one direction only", x=x, y=y),
        span=job.place(arguments.given("tp_x"), arguments.given("tp_y"), arguments.given("tp_2d")),
        related=tuple(place for name in ("tp_y", "tensor_model_parallel_size") if (v := arguments.given(name)) for place in v.related),
        key=next((v.key for name in ("tp_x", "tp_y", "tp_2d") if (v := arguments.given(name))), ()),
        fix=fixes[0],
        alternatives=fixes[1:],
        upstream=DOCUMENT,
    )
