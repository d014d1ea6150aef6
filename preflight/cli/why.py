"""preflight why: why a job died, from its logs."""

from __future__ import annotations

from typing import Annotated

from preflight.checking.engine import Report
from preflight.checking.merged_reports import merge
from preflight.cli import checker_setup, output
from preflight.cli.exit_codes import OK
from preflight.cli.options import File, Inputs, JobFacts, Lang, Rules, option, takes
from preflight.cli.output import deliver
from preflight.source.source_file import InputError

FORMATS = ("text", "json", "html")
Logs = Annotated[
    list[str] | None, option(metavar="[LOG|-]...", help="Logs of one job: files, folders of log files, or - for stdin.")
]
Run = Annotated[str | None, option("--run", metavar="CONFIG", help="The config or launch script of the job.")]
JobId = Annotated[
    str | None,
    option("--job", metavar="ID", help="The id of a Slurm job, whose logs and state are read with scontrol and sacct."),
]
Format = Annotated[
    str,
    option(
        "--output-format", "-f", metavar="text|json|html", help="Output for people (text, html) or for programs (json)."
    ),
]
Colour = Annotated[
    str,
    option(
        "--color", metavar="auto|always|never", help="Whether to use colors (auto respects NO_COLOR and FORCE_COLOR)."
    ),
]


@takes(JobFacts, Rules)
def why(
    facts: JobFacts,
    rules: Rules,
    logs: Logs = None,
    run: Run = None,
    job: JobId = None,
    output_format: Format = "text",
    output_file: File = None,
    color: Colour = "auto",
    lang: Lang = None,
) -> int:
    """Find why a job died, from the logs of its ranks.

    Prints the first failure without its consequences, its cause, and the rule that reports it. With --run, also prints
    the line in the config and its fix.
    """
    from preflight.logs.diagnosis import diagnosed
    from preflight.logs.files import read_logs
    from preflight.logs.matching_findings import behind
    from preflight.report.failure_diagnosis import why_dict, why_html, why_text
    from preflight.report.json_encoding import dumped

    if output_format not in FORMATS:
        raise InputError(f"this command prints text, json or html, not {output_format!r}")
    names, said = _logs(list(logs or ()), job)
    found = diagnosed(read_logs(names, said))
    told = behind(found, _checked(run, facts, rules)) if run is not None else None
    look = output.look(color)
    if output_format == "json":
        text = dumped(why_dict(found, told, names))
    elif output_format == "html":
        text = why_html(found, told, names)
    else:
        text = why_text(found, told, look._replace(color=False, width=0) if output_file else look)
    deliver(text, output_file, [*names, *([run] if run else [])])
    return OK


def _logs(named: list[str], job: str | None) -> tuple[list[str], tuple[str, ...]]:
    """The logs of a call, and the scheduler's record of a job. Raises InputError if there are none."""
    from preflight.logs.files import opened

    said: tuple[str, ...] = ()
    if job is not None:
        from preflight.logs.slurm_job_logs import logs_of_job

        of_job = logs_of_job(job)
        named, said = [*named, *of_job.logs], of_job.said
    if not named and not said:
        raise InputError("no log given; pass log files, folders of log files, - for stdin, or --job ID")
    return opened(named), said


def _checked(run: str, facts: JobFacts, rules: Rules) -> Report:
    """The report of `check` on a config."""
    checker = checker_setup.checker(facts, rules)
    return merge(checker_setup.reports(checker, Inputs(paths=[run]), None))
