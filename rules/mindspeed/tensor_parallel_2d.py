"""Checks of the sizes of 2-D tensor parallelism."""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, known, rule
from preflight.lint.constraint import REMOVE
from preflight.run.arguments import Arguments
from preflight.source.finding import Kind
from preflight.source.record import NamedTuple

CHECK = "mindspeed/features_manager/tensor_parallel/tp_2d.py:39"
FEATURE = "mindspeed/features_manager/tensor_parallel/tp_2d.py:40"
GROUPS = "mindspeed/core/tensor_parallel/tp_2d/parallel_state_2d.py"
LARGEST = 65536  # no run splits a matrix into more parts
OWN = (
    "tp_x",
    "tp_y",
    "enable_overlap_ag_with_matmul",
    "enable_overlap_matmul_with_rs",
    "enable_backward_overlap_ag_with_matmul",
)


@rule(
    id="mindspeed/tp-2d-sizes",
    kind=Kind.RELEASE,
    severity=Severity.ERROR,
    frameworks=("mindspeed",),
    upstream=(CHECK, FEATURE, f"{GROUPS}:242", f"{GROUPS}:247"),
    reads=("tp_2d", "tp_x", "tp_y"),
)
def tp_2d_sizes(job: Job) -> Iterator[Finding | Unverified]:
    """The product of the two sizes of 2-D tensor parallelism is not the tensor-parallel size.

    ## What it does
    Checks that `--tp-x` times `--tp-y` equals `--tensor-model-parallel-size` if `--tp-2d` is on. Both default to 1.

    ## Why is this bad?
    MindSpeed checks the sizes with floor division, so 3 × 2 passes for 8, and a size of 0 causes a division by zero. If
    wrong sizes pass, the run crashes when the process groups are created, after it has waited in the queue.

    ## Example
        --tensor-model-parallel-size 8 --tp-2d --tp-x 3 --tp-y 2

    Use instead:

        --tensor-model-parallel-size 8 --tp-2d --tp-x 4 --tp-y 2

    ## Fix safety
    Unsafe: different sizes change the communication. The loss stays the same up to rounding.

    ## References
    MindSpeed 028de58, mindspeed/features_manager/tensor_parallel/tp_2d.py:39,
    mindspeed/core/tensor_parallel/tp_2d/parallel_state_2d.py:242
    """
    arguments, read = job.arguments, sizes(job.arguments)
    if isinstance(read, Unverified):
        yield read
        return
    if read is None or (read.x * read.y == read.tensor and read.x > 0):
        return
    x, y, tensor = read
    fixes = tuple(repairs(arguments, tensor, (x, y)))
    yield Finding(
        Message(
            "--tp-x {x} × --tp-y {y} = {product} must equal the tensor-parallel size {tensor}",
            x=x,
            y=y,
            product=x * y,
            tensor=tensor,
        )
        if x > 0 and y > 0
        else Message("--tp-x {x} and --tp-y {y} must each be at least 2", x=x, y=y),
        span=job.place(arguments.given("tp_x"), arguments.given("tp_y"), arguments.given("tp_2d")),
        related=tuple(
            place
            for name in ("tp_y", "tensor_model_parallel_size")
            if (v := arguments.given(name))
            for place in v.related
        ),
        key=next((v.key for name in ("tp_x", "tp_y", "tp_2d") if (v := arguments.given(name))), ()),
        fix=next(iter(fixes), None),
        alternatives=fixes[1:],
        upstream=_place(x, y, tensor),
        layout=True,
    )


def _place(x: int, y: int, tensor: int) -> str:
    """The check that stops the run: the one in MindSpeed, or a later one in the process groups."""
    if x <= 0 or tensor // x != y:
        return CHECK
    return f"{GROUPS}:242" if tensor % x else f"{GROUPS}:247"


class Sizes(NamedTuple):
    """The two sizes of 2-D tensor parallelism, and the sizes that they split."""

    x: int
    y: int
    tensor: int


def sizes(arguments: Arguments) -> Sizes | Unverified | None:
    """The sizes of a run, None if it splits in one direction."""
    switch = arguments.get("tp_2d")
    if switch.known and not switch.raw:
        return None
    values = tuple(arguments.get(name) for name in ("tp_x", "tp_y", "tensor_model_parallel_size"))
    if (numbers := known(switch, *values)) is None:
        return Unverified(next((v.because for v in (switch, *values) if not v.known), ""))
    return Sizes(*numbers[1:])


def repairs(arguments: Arguments, tensor: int, near: tuple[int, int]) -> Iterator[Fix]:
    """Pairs of factors greater than 1, those nearest to the written sizes first. If there are none, the fix returns to
    one dimension."""
    pairs = [(x, tensor // x) for x in range(2, min(tensor // 2, LARGEST) + 1) if tensor % x == 0]
    for x, y in sorted(pairs, key=lambda pair: (abs(pair[0] - near[0]) + abs(pair[1] - near[1]), pair))[:3]:
        edits = [
            e
            for name, size in (("tp_x", x), ("tp_y", y))
            if arguments.get(name).raw != size
            for e in arguments.put(name, size)
        ]
        yield Fix(f"set --tp-x {x} and --tp-y {y}", tuple(edits))
    typed = [name for name in ("tp_2d", *OWN) if arguments.given(name) is not None]
    yield Fix(
        "go back to one-dimensional tensor parallelism", tuple(e for name in typed for e in arguments.put(name, REMOVE))
    )


DOCUMENT = "docs/zh/features/tensor-parallel-2d.md:73"


@rule(
    id="mindspeed/tp-2d-degenerate",
    kind=Kind.RELEASE,
    severity=Severity.WARNING,
    frameworks=("mindspeed",),
    upstream=(DOCUMENT,),
    reads=("tp_2d", "tp_x", "tp_y"),
)
def tp_2d_degenerate(job: Job) -> Iterator[Finding | Unverified]:
    """One of the two directions of 2-D tensor parallelism has only one rank.

    ## What it does
    Reports a warning for `--tp-2d` if `--tp-x` or `--tp-y` is 1. With 8 × 1, for example, all communication runs in one
    direction.

    ## Why is this bad?
    The documentation requires both sizes to be greater than 1, but the validator does not check it. The run has the
    cost of 2-D linear layers without any advantage over one-dimensional tensor parallelism. A prime tensor-parallel
    size has no other pair of factors.

    ## Example
        --tensor-model-parallel-size 8 --tp-2d --tp-x 8 --tp-y 1

    Use instead:

        --tensor-model-parallel-size 8 --tp-2d --tp-x 4 --tp-y 2

    ## Fix safety
    Unsafe: different sizes change the communication. The loss stays the same up to rounding.

    ## References
    MindSpeed 028de58, docs/zh/features/tensor-parallel-2d.md:73
    """
    arguments, read = job.arguments, sizes(job.arguments)
    if isinstance(read, Unverified):
        yield read
        return
    if read is None or read.x * read.y != read.tensor or min(read.x, read.y) != 1:
        return
    x, y, tensor = read
    fixes = tuple(repairs(arguments, tensor, (x, y)))
    yield Finding(
        "--tp-2d has no effect with a tensor-parallel size of 1"
        if tensor == 1
        else Message("2-D tensor parallelism with {x} × {y} ranks splits in only one direction", x=x, y=y),
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
