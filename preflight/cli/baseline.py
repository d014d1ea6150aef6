"""preflight baseline: records the current findings in a file, so that later checks report only new ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from preflight.checking.baseline import FILE, Baseline
from preflight.checking.merged_reports import merge
from preflight.cli import checker_setup, output
from preflight.cli.exit_codes import OK, USAGE
from preflight.cli.options import Inputs, JobFacts, Rules, Started, takes
from preflight.cli.output import read_for, refuse_unread
from preflight.report.source_excerpts_and_escapes import counted
from preflight.source.writing import refuse_report

To = Annotated[str, typer.Option("--output-file", "-o", metavar="FILE", help="The baseline file to write.")]


@takes(Inputs, JobFacts, Rules)
def baseline(inputs: Inputs, facts: JobFacts, rules: Rules, command: Started = None, output_file: To = FILE) -> int:
    """Record the current findings, so that `preflight check --baseline FILE` reports only new ones.

    Findings are identified by rule and key path, so they are still recognized when lines move.
    """
    checker = checker_setup.checker(facts, rules, lenient=True)
    report = merge(checker_setup.reports(checker, inputs, command))
    refuse_unread(checker, inputs, report.checked)
    path = Path(output_file)
    if report.errors or report.crashes or not report.checked:
        output.complain(output.problems(report))
        typer.echo("preflight: no baseline was written", err=True)
        return output.exit_code(report, "never") or USAGE
    refuse_report(output_file, read_for(report))
    made = Baseline.of(report, Path(os.path.abspath(path)).parent)
    made.write(path)
    typer.echo(
        f"wrote {path}: {counted(made.known.total(), 'finding')}"
        f" in {counted(len({known.path for known in made.known}), 'file')}"
    )
    return OK
