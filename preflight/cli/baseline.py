"""preflight baseline"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from preflight.baseline import FILE, Baseline
from preflight.checking import merge
from preflight.cli import output, session
from preflight.cli.app import OK, USAGE
from preflight.cli.options import Inputs, JobFacts, Rules, takes
from preflight.report.plain import counted

To = Annotated[str, typer.Option("--output-file", "-o", metavar="FILE", help="The baseline file.")]


@takes(Inputs, JobFacts, Rules)
def baseline(inputs: Inputs, facts: JobFacts, rules: Rules, ctx: typer.Context, output_file: To = FILE) -> int:
    """Write down today's findings, so that `preflight check --baseline FILE` tells only new ones.

    Findings are named by rule and key path: they stay known when lines move.
    """
    checker = session.checker(facts, rules)
    report = merge(session.reports(checker, inputs, ctx.obj))
    path = Path(output_file)
    if report.errors or report.crashes or not report.checked:
        output.complain(output.problems(report))
        typer.echo("preflight: no baseline was written", err=True)
        return output.exit_code(report, "never") or USAGE
    made = Baseline.of(report, Path(os.path.abspath(path)).parent)
    made.write(path)
    typer.echo(f"wrote {path}: {counted(made.known.total(), 'finding')} in {counted(len({known.path for known in made.known}), 'file')}")
    return OK
