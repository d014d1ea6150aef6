"""preflight layouts: layouts that fit the devices, ranked by step time."""

from __future__ import annotations

import sys
from typing import Annotated

from preflight.cli.options import AtSite, Inputs, JobFacts, Printed, Rules, option, takes

Kept = Annotated[list[str] | None, option("--keep", metavar="NAME=N", help="Keep a parallel size, e.g. tp=4.")]
Fixed = Annotated[list[str] | None, option("--fix", metavar="NAME=N", help="The old name of --keep.", hidden=True)]
Most = Annotated[
    list[str] | None, option("--max", metavar="NAME=N", help="Set an upper bound for a parallel size, e.g. pp=4.")
]
Show = Annotated[int, option("--show", metavar="N", min=1, help="Number of layouts to show.", show_default=True)]
Explain = Annotated[bool, option("--explain", help="Explain why other layouts were rejected.")]
Apply = Annotated[int, option("--apply", metavar="K", min=0, help="Write the K-th layout to the file.")]
Every = Annotated[
    bool, option("--all", help="Also show layouts that have the same parallel sizes but differ in details.")
]
Fp8 = Annotated[
    bool, option("--fp8", help="Search for layouts that compute in FP8; --apply then also writes the FP8 options.")
]
Scale = Annotated[
    str, option("--scale", metavar="N,N,…", help="Show the best layout for each of these numbers of devices instead.")
]
Plot = Annotated[
    str,
    option(
        "--plot",
        metavar="FILE",
        help="With --scale, plot tokens per second to a .png, .svg or .pdf file (needs the extra `plot`).",
    ),
]
Run = Annotated[
    int, option("--run", metavar="N", min=1, help="Number of the run that --apply changes, if a script has several.")
]


@takes(Inputs, JobFacts, AtSite, Rules, Printed)
def layouts(
    inputs: Inputs,
    facts: JobFacts,
    at: AtSite,
    rules: Rules,
    out: Printed,
    kept: Kept = None,
    fixed: Fixed = None,
    most: Most = None,
    show: Show = 10,
    explain: Explain = False,
    apply: Apply = 0,
    run: Run = 1,
    every: Every = False,
    fp8: Fp8 = False,
    scale: Scale = "",
    plot: Plot = "",
) -> int:
    """Find parallel layouts that pass the rules and fit in memory.

    The model, the devices and the global batch stay as they are. Layouts are ranked by estimated step time, and only
    the fastest of each kind is shown, next to the current layout.

    Exit codes: 0 if layouts were found, 1 if no layout fits, 2 for wrong usage.
    """
    from preflight.cli.layout_search import (
        Wanted,
        search,  # needs numpy
    )

    if fixed:
        print("preflight: --fix is called --keep now", file=sys.stderr)
    wanted = Wanted([*(kept or []), *(fixed or [])], most, show, explain, apply, run, every, fp8)
    if scale:
        from preflight.cli.layout_search import scaled

        return scaled(inputs, (facts, at), rules, out, wanted, scale, plot)
    return search(inputs, (facts, at), rules, out, wanted)
