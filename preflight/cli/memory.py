"""preflight memory"""

from __future__ import annotations

import typer

from preflight.cli.options import Inputs, JobFacts, Output, Rules, takes
from preflight.cli.show import show_jobs


@takes(Inputs, JobFacts, Rules, Output)
def memory(inputs: Inputs, facts: JobFacts, rules: Rules, out: Output, ctx: typer.Context) -> int:
    """Estimate the memory of each run.

    Per pipeline stage and term by term; says whether the run fits the device.
    """
    from preflight.report.memory import memory_dict, memory_text

    return show_jobs((inputs, facts, rules, out), ctx.obj, memory_text, memory_dict)
