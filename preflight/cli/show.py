"""preflight show: each run as it is understood: release, layout, batch, memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from preflight.checking.configured_checker import Checker
from preflight.checking.engine import Crash, Report
from preflight.checking.file_failures import failed
from preflight.checking.merged_reports import merge
from preflight.cli import checker_setup, output
from preflight.cli.exit_codes import FAILED, OK, USAGE
from preflight.cli.options import AtSite, Inputs, JobFacts, Printed, Rules, Started, takes
from preflight.cli.output import deliver, read_for, refuse_unread
from preflight.job import Job
from preflight.report.json_encoding import dumped
from preflight.report.source_excerpts_and_escapes import Look
from preflight.source.record import replace
from preflight.source.source_file import InputError

STEP = "A measured step time, e.g. 1.2s; also prints tokens/s, MFU and HFU."
All = Annotated[bool, typer.Option("--all", "-a", help="Instead, list every value and its origin.")]
StepTime = Annotated[str | None, typer.Option("--step-time", metavar="TIME", help=STEP, show_default=False)]


@takes(Inputs, JobFacts, AtSite, Rules, Printed)
def show(
    inputs: Inputs,
    facts: JobFacts,
    at: AtSite,
    rules: Rules,
    out: Printed,
    command: Started = None,
    step_time: StepTime = None,
    everything: All = False,
) -> int:
    """Print each run as the framework reads it, on one screen.

    Prints the model, layout, batch, schedule, precision, memory, data and checkpoints; --all lists every value and its
    origin instead.
    """
    from preflight.report.performance import seconds
    from preflight.report.plan import plan_dict, plan_text
    from preflight.report.run_overview import overview
    from preflight.report.text import seen

    step = seconds(step_time) if step_time else None
    described = partial(plan_text if everything else overview, step=step)

    def as_text(job: Job, look: Look) -> str:
        around = [] if job.site is None else seen(job.site)
        return described(job, look=look) + "".join(f"{line}\n" for line in around)

    return show_jobs((inputs, facts, at, rules, out), command, as_text, plan_dict)


Options = tuple[Inputs, JobFacts, AtSite, Rules, Printed]


def show_jobs(
    options: Options,
    command: list[str] | None,
    as_text: Callable[..., str],
    as_dict: Callable[..., dict[str, Any]],
    proven: Callable[[Checker, Job], dict[str, Any]] = lambda checker, job: {},
) -> int:
    """Print a description of every run of a call, as text or as JSON. proven: changes tested on the text of a run, by
    the name under which they are printed."""
    inputs, facts, at, rules, out = options
    style, as_json = output.printed(out), out.output_format == "json"
    checker = checker_setup.checker(facts, rules, lenient=True, at=at)
    checker.ask_for_errors_only()
    report = merge(checker_setup.reports(checker, inputs, command))
    refuse_unread(checker, inputs, report.checked)
    describe: Callable[..., Any] = as_dict if as_json else partial(as_text, look=style)
    described, failures = _each(report, lambda job: describe(job, **proven(checker, job)))
    text = dumped({"schema": 1, "runs": described}) if as_json else "\n".join(described)
    if described or as_json:
        deliver(text, out.output_file, read_for(report))
    report = replace(report, crashes=(*report.crashes, *failures))
    output.write(report, [], style)
    if report.crashes:
        return FAILED
    if not report.jobs and not report.errors:
        return output.nothing("read", report.skipped, checker)
    return OK if report.jobs and not report.errors else USAGE


def _each(report: Report, describe: Callable[[Job], Any]) -> tuple[list[Any], list[Crash]]:
    """The description of each run, and the runs without one because of an error."""
    described, failures = [], list[Crash]()
    for job in report.jobs:
        try:
            described.append(describe(job))
        except InputError:
            raise
        except Exception as error:
            failures += failed(job.documents[0].source.name, error).crashes
    return described, failures
