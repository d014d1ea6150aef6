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

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.mindspeed.tp_2d_sizes import repairs, sizes
from preflight.source.finding import Kind

DOCUMENT = "docs/zh/features/tensor-parallel-2d.md:73"


@rule(
    id="mindspeed/tp-2d-degenerate",
    kind=Kind.RELEASE,
    severity=Severity.WARNING,
    frameworks=("mindspeed",),
    upstream=(DOCUMENT,),
    reads=("tp_2d", "tp_x", "tp_y"),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Both sizes should be above 1."""
    arguments, read = job.arguments, sizes(job.arguments)
    if isinstance(read, Unverified):
        yield read
        return
    if read is None or read.x * read.y != read.tensor or min(read.x, read.y) != 1:
        return
    x, y, tensor = read
    fixes = tuple(repairs(arguments, tensor, (x, y)))
    yield Finding(
        "--tp-2d has no effect with tensor parallel 1"
        if tensor == 1
        else Message("2-D tensor parallel {x} x {y} splits in one direction only", x=x, y=y),
        span=job.place(arguments.given("tp_x"), arguments.given("tp_y"), arguments.given("tp_2d")),
        related=tuple(
            place
            for name in ("tp_y", "tensor_model_parallel_size")
            if (v := arguments.given(name))
            for place in v.related
        ),
        key=next((v.key for name in ("tp_x", "tp_y", "tp_2d") if (v := arguments.given(name))), ()),
        fix=fixes[0],
        alternatives=fixes[1:],
        upstream=DOCUMENT,
    )
