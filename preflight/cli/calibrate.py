"""preflight calibrate: fits the memory and step-time estimates to the logs of a cluster's own runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from preflight.checking.merged_reports import merge
from preflight.cli import checker_setup, output
from preflight.cli.exit_codes import OK
from preflight.cli.exit_handling import say
from preflight.cli.options import Inputs, JobFacts, Printed, Rules, option, takes
from preflight.cli.output import deliver
from preflight.run.project_settings import FILE
from preflight.source.finding import Message
from preflight.source.source_file import InputError
from preflight.source.translation import local
from preflight.source.writing import create_file

if TYPE_CHECKING:
    from preflight.job import Job
    from preflight.logs.calibration import Run

Logs = Annotated[list[str] | None, option(metavar="[LOG|-]...", help="Logs of completed runs, one per run.")]
RUN = "The config of the run; with several runs, one per log in the same order, or one for all."
Configs = Annotated[list[str] | None, option("--run", metavar="CONFIG", help=RUN)]
Write = Annotated[
    bool, typer.Option("--write", help="Write the settings to preflight.toml here, unless it already exists.")
]


@takes(JobFacts, Rules, Printed)
def calibrate(
    facts: JobFacts,
    rules: Rules,
    out: Printed,
    logs: Logs = None,
    run: Configs = None,
    write: Write = False,
) -> int:
    """Compare the estimates with completed runs, and print settings for this cluster.

    Reads step times and peak memory from the iteration lines of Megatron, MindSpeed and MindFormers logs. The printed
    settings correct later estimates, for each device and kind of model.
    """
    from preflight.logs.calibration import factors, settings_of
    from preflight.report.calibration import calibration_dict, calibration_text
    from preflight.report.json_encoding import dumped

    style = output.printed(out)
    if not logs or not run:
        raise InputError("pass the log of a completed run and its config: preflight calibrate LOG --run CONFIG")
    if len(run) not in (1, len(logs)):
        raise InputError(
            f"{len(logs)} logs do not match {len(run)} configs; pass one config for all logs, or one per log"
        )
    runs = _runs(logs, run * len(logs) if len(run) == 1 else run, facts, rules)
    found = factors(runs)
    if out.output_format == "json":
        text = dumped(calibration_dict(runs, found))
    else:
        text = calibration_text(runs, found, style)
    deliver(text, out.output_file, [*logs, *run])
    if write:
        _write("\n".join(settings_of(found)))
    return OK


def _runs(logs: Sequence[str], configs: Sequence[str], facts: JobFacts, rules: Rules) -> list[Run]:
    from preflight.logs.calibration import measured_run
    from preflight.logs.files import log
    from preflight.logs.iterations import iterations

    jobs: dict[str, Job] = {}
    runs = []
    for name, config in zip(logs, configs, strict=True):
        with log(name) as file:
            found = iterations(file)
        if found is None:
            raise InputError("has too few iteration lines to time a step", name)
        if config not in jobs:
            jobs[config] = _job(config, facts, rules)
        runs.append(measured_run(name, found, jobs[config]))
    return runs


def _job(config: str, facts: JobFacts, rules: Rules) -> Job:
    """The run of a config. Raises InputError if there is none."""
    report = merge(checker_setup.reports(checker_setup.checker(facts, rules), Inputs(paths=[config]), None))
    output.complain(output.problems(report))
    if not report.jobs:
        raise InputError("contains no run that preflight recognizes", config)
    return report.jobs[0]


def _write(text: str) -> None:
    if os.path.lexists(FILE):
        raise InputError("already exists; add the lines to it", FILE)
    create_file(Path(FILE), text.encode())
    say(f"{local(Message('{file} is written', file=FILE))}\n")
