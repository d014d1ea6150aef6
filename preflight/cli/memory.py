"""preflight memory"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from preflight.cli.options import Inputs, JobFacts, Printed, Rules, Started, takes
from preflight.cli.show import show_jobs
from preflight.job import Job
from preflight.report.style import Look

Plot = Annotated[
    str | None,
    typer.Option(
        "--plot", metavar="FILE", help="Draw it: .png, .svg, .pdf (extra `plot`) or .html.", show_default=False
    ),
]


@takes(Inputs, JobFacts, Rules, Printed)
def memory(
    inputs: Inputs, facts: JobFacts, rules: Rules, out: Printed, command: Started = None, plot: Plot = None
) -> int:
    """Estimate the memory of each run.

    Per pipeline stage and term by term; says whether the run fits the device.
    """
    from preflight.report.memory import memory_dict, memory_text
    from preflight.report.plot import plot as draw

    def text(job: Job, look: Look) -> str:
        if plot is not None:
            draw(job, Path(plot))
        return memory_text(job, look)

    return show_jobs((inputs, facts, rules, out), command, text, memory_dict)
