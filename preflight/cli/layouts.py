"""preflight layouts"""

from __future__ import annotations

from typing import Annotated

from preflight.cli.options import Inputs, JobFacts, Printed, Rules, option, takes

Fixed = Annotated[list[str] | None, option("--fix", metavar="NAME=N", help="Keep a size, e.g. tensor=8.")]
Most = Annotated[list[str] | None, option("--max", metavar="NAME=N", help="Bound a size, e.g. pipeline=4.")]
Show = Annotated[int, option("--show", metavar="N", min=1, help="How many layouts to show.", show_default=True)]
Explain = Annotated[bool, option("--explain", help="Say why other layouts were left out.")]
Apply = Annotated[int, option("--apply", metavar="K", min=0, help="Write the K-th layout into the file.")]
Run = Annotated[int, option("--run", metavar="N", min=1, help="The run of a script that --apply changes.")]


@takes(Inputs, JobFacts, Rules, Printed)
def layouts(
    inputs: Inputs,
    facts: JobFacts,
    rules: Rules,
    out: Printed,
    fixed: Fixed = None,
    most: Most = None,
    show: Show = 10,
    explain: Explain = False,
    apply: Apply = 0,
    run: Run = 1,
) -> int:
    """Find parallel layouts that pass the rules and fit in memory.

    The model, the devices and the global batch stay as they are; layouts are ranked by estimated step time.

    Exit codes: 0 layouts were found, 1 none fits, 2 wrong usage.
    """
    from preflight.cli.layout_search import Wanted, search  # needs numpy

    return search(inputs, facts, rules, out, Wanted(fixed, most, show, explain, apply, run))
