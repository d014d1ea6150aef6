"""preflight memory: the predicted memory of each run, by device and part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from preflight.checking.configured_checker import Checker
from preflight.cli.options import AtSite, Inputs, JobFacts, Printed, Rules, Started, option, takes
from preflight.cli.show import show_jobs
from preflight.job import Job
from preflight.memory.advice import Saving
from preflight.plugins import manager as plugins
from preflight.report.source_excerpts_and_escapes import Look
from preflight.run.cluster import Device

Plot = Annotated[
    str | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Plot the memory to a .png, .svg or .pdf file (needs the extra `plot`), or to .html (needs `reports`).",
        show_default=False,
    ),
]


Compare = Annotated[
    list[str] | None,
    option(
        "--compare",
        metavar="NAME",
        help="Also compare the estimate with this accelerator; repeatable.",
        completion="devices",
    ),
]


@takes(Inputs, JobFacts, AtSite, Rules, Printed)
def memory(
    inputs: Inputs,
    facts: JobFacts,
    at: AtSite,
    rules: Rules,
    out: Printed,
    command: Started = None,
    plot: Plot = None,
    compare: Compare = None,
) -> int:
    """Estimate the memory of each run.

    Prints each term of the estimate per pipeline stage, and whether the run fits the device.
    """
    from preflight.report.memory import memory_dict, memory_text
    from preflight.report.plot import plot as draw

    others = [_device(name) for name in compare or ()]

    def text(job: Job, look: Look, savings: Sequence[Saving]) -> str:
        if plot is not None:
            draw(job, Path(plot))
        return memory_text(job, look, others, savings)

    return show_jobs((inputs, facts, at, rules, out), command, text, memory_dict, _proven)


def _proven(checker: Checker, job: Job) -> dict[str, Any]:
    """Changes that are proven to reduce the memory of a run."""
    from preflight.fix.trial_edits import proven_savings

    return {"savings": proven_savings(checker.workspace([job.documents[0].source]), job)}


def _device(name: str) -> Device:
    """An accelerator by name. Raises InputError for an unknown one."""
    from preflight.checking.request_validation import verify_facts
    from preflight.run.cluster import find_device
    from preflight.run.project_settings import Facts

    known = plugins.load()
    verify_facts(Facts(device=name), known)
    found = find_device(known.devices, name)
    assert found is not None
    return found
