"""More than one overlap of forward communication is enabled in 2-D tensor parallelism.

## What it does
Warns if `--tp-2d` is used with more than one of `--enable-overlap-ag-with-matmul`, `--enable-overlap-matmul-with-rs`
and `--coc-fused-kernel`.

## Why is this bad?
The forward pass uses the first enabled option of reduce-scatter overlap, all-gather overlap and fused kernel, in this
order. Nothing checks the combination, and the other options are silently ignored, so a comparison of the three options
may measure the same run.

## Example
    --tp-2d --tp-x 4 --tp-y 2 --enable-overlap-ag-with-matmul --enable-overlap-matmul-with-rs

Use instead:

    --tp-2d --tp-x 4 --tp-y 2 --enable-overlap-matmul-with-rs

## Fix safety
Safe: the removed options had no effect. The fused kernel stays if the backward pass needs it.

## References
MindSpeed 028de58, docs/zh/features/tensor-parallel-2d.md:82,
mindspeed/core/tensor_parallel/tp_2d/linear_2d_split_along_first_dim.py:88
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from preflight import Finding, Fix, Job, Message, Safety, Severity, Unverified, rule
from preflight.lint.constraint import REMOVE
from preflight.source.finding import Kind

DOCUMENT = "docs/zh/features/tensor-parallel-2d.md:82"
RANKED = ("enable_overlap_matmul_with_rs", "enable_overlap_ag_with_matmul", "coc_fused_kernel")
BACKWARD = "enable_backward_overlap_ag_with_matmul"

ONE = "{names} has no effect in the forward pass, because {wins} takes precedence"
MORE = "{names:and} have no effect in the forward pass, because {wins} takes precedence"


@rule(
    id="mindspeed/overlap-flags-exclusive",
    kind=Kind.RELEASE,
    severity=Severity.WARNING,
    frameworks=("mindspeed",),
    upstream=(DOCUMENT,),
    reads=("tp_2d",),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """At most one forward overlap."""
    arguments = job.arguments
    if arguments.given("tp_2d") is None:
        return
    # later options do not change which one takes precedence
    certain = list(takewhile(lambda name: arguments.get(name).known, RANKED))
    switches = [name for name in certain if arguments.get(name).raw]
    if len(switches) < 2 or not arguments.get("tp_2d").known:
        if because := next(
            (value.because for name in ("tp_2d", *RANKED) if not (value := arguments.get(name)).known), None
        ):
            yield Unverified(because)
        return
    wins, *unused = switches
    winner = arguments.spell(wins)
    names = [arguments.spell(name) for name in unused]
    places = [v for name in unused if (v := arguments.given(name)) is not None]
    removable = [name for name in unused if name != "coc_fused_kernel" or arguments.get(BACKWARD).raw in (False, None)]
    drop = tuple(edit for name in removable for edit in arguments.put(name, REMOVE))
    keep = tuple(edit for name in switches[:-1] for edit in arguments.put(name, REMOVE))
    fixes = (
        [Fix(f"remove {' and '.join(names)}, because {winner} takes precedence", drop, Safety.SAFE)]
        if len(removable) == len(unused)
        else []
    )
    fixes.append(Fix(f"keep {names[-1]} instead", keep))
    yield Finding(
        Message.plural(len(names), ONE, MORE, names=tuple(names), wins=winner),
        span=job.place(*places),
        related=tuple(place for v in (*places[1:], *filter(None, [arguments.given(wins)])) for place in v.related),
        key=places[0].key if places else (),
        fix=fixes[0],
        alternatives=tuple(fixes[1:]),
        upstream=DOCUMENT,
    )
