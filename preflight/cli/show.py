"""preflight show"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from preflight.checking import merge
from preflight.cli import output, session
from preflight.cli.app import OK, USAGE
from preflight.cli.options import Inputs, JobFacts, Printed, Rules, takes
from preflight.engine import Policy
from preflight.job import Job
from preflight.report.look import Look

StepTime = Annotated[str | None, typer.Option("--step-time", metavar="TIME", help="A measured step, e.g. 1.2s: prints tokens/s, MFU, HFU.", show_default=False)]


@takes(Inputs, JobFacts, Rules, Printed)
def show(inputs: Inputs, facts: JobFacts, rules: Rules, out: Printed, ctx: typer.Context, step_time: StepTime = None) -> int:
    """Print the resolved plan of each run.

    Sizes, how the run is spread over devices, and where every value came from.
    """
    from preflight.report.plan import plan_dict, plan_text
    from preflight.report.utilisation import seconds

    step = seconds(step_time) if step_time else None
    return show_jobs((inputs, facts, rules, out), ctx.obj, partial(plan_text, step=step), plan_dict)


Options = tuple[Inputs, JobFacts, Rules, Printed]


def show_jobs(options: Options, command: list[str] | None, as_text: Callable[[Job, Look], str], as_dict: Callable[[Job], dict[str, Any]]) -> int:
    """Print something about every run of a call, as text or as JSON."""
    inputs, facts, rules, out = options
    style, as_json = output.printed(out), out.output_format == "json"
    checker = session.checker(facts, rules)
    checker.policy = Policy(lambda rule, path: False)
    report = merge(session.reports(checker, inputs, command))
    if as_json:
        text = json.dumps({"schema": 1, "runs": [as_dict(job) for job in report.jobs]}, indent=2) + "\n"
    else:
        text = "\n".join(as_text(job, style) for job in report.jobs)
    if report.jobs or as_json:
        output.deliver(text, out.output_file)
    output.write(report, [], style)
    if not report.jobs and not report.errors:
        return output.nothing("read", report.skipped, checker)
    return OK if report.jobs and not report.errors else USAGE
