"""preflight check"""

from pathlib import Path
from typing import Annotated

import typer

from preflight.checking import Checker, merge
from preflight.cli import output, session
from preflight.cli.app import OK, USAGE
from preflight.cli.options import Inputs, JobFacts, Output, Rules, Scope, takes
from preflight.cli.stream import say
from preflight.engine import Report
from preflight.settings import Settings
from preflight.source import InputError
from preflight.spelling import did_you_mean

LEVELS = ("error", "warning", "note", "never")
FailOn = Annotated[str | None, typer.Option("--fail-on", metavar="|".join(LEVELS), help="Lowest severity that makes the exit code 1.", show_default=False)]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 whatever is found.", show_default=False)]
ShowSettings = Annotated[bool, typer.Option("--show-settings", help="Print the settings that hold, and stop.", show_default=False)]


Statistics = Annotated[bool, typer.Option("--statistics", help="Count findings by rule instead of listing them.", show_default=False)]
Suggest = Annotated[bool, typer.Option("--suggest", help="Search for layouts that cure what is found (slower).", show_default=False)]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Check again whenever a file changes.", show_default=False)]


@takes(Inputs, JobFacts, Rules, Output, Scope)
def check(
    inputs: Inputs,
    facts: JobFacts,
    rules: Rules,
    out: Output,
    scope: Scope,
    ctx: typer.Context,
    fail_on: FailOn = None,
    exit_zero: ExitZero = False,
    show_settings: ShowSettings = False,
    statistics: Statistics = False,
    watch: Watch = False,
    suggest: Suggest = False,
) -> int:
    """Check configs and launch scripts, or the command after --.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 wrong usage or unreadable input, 3 preflight itself failed.
    """
    checker = session.checker(facts, rules)
    checker.suggest = suggest
    if show_settings:
        say(_shown(checker.settings))
        return OK
    level = "never" if exit_zero else fail_on or checker.settings.fail_on
    if level not in LEVELS:
        raise InputError(f"--fail-on is one of {', '.join(LEVELS)}, not {level!r}{did_you_mean(level, LEVELS)}")
    if statistics:
        out = out._replace(output_format=["statistics", *(name for name in out.output_format or () if ":" in name)])

    def once() -> int:
        return _once(checker, inputs, ctx.obj, out, scope, level)

    if not watch:
        return once()
    from preflight.cli.watch import watch as watching

    return watching(once, lambda: [item.path for item in session.named(checker, inputs)])


def _once(checker: Checker, inputs: Inputs, command: list[str] | None, out: Output, scope: Scope, level: str) -> int:
    targets, style = output.formats(out, checker.plugins), output.look(out)
    report = _narrowed(merge(session.reports(checker, inputs, command)), checker, scope)
    nothing = not (report.checked or report.errors or inputs.allow_unclaimed)
    if not nothing or out.output_format:
        output.write(report, targets, style)
    if nothing:
        skipped = f": no dialect claims {', '.join(report.skipped[:3])}{' …' if len(report.skipped) > 3 else ''}" if report.skipped else ""
        typer.echo(f"preflight: nothing was checked{skipped}", err=True)
        return USAGE
    return output.exit_code(report, level)


def _narrowed(report: Report, checker: Checker, scope: Scope) -> Report:
    """The report without what a baseline knows, or what was there before a change."""
    if scope.baseline is not None:
        from preflight.baseline import Baseline

        report, stale = Baseline.read(Path(scope.baseline)).hide(report)
        if stale:
            typer.echo(f"preflight: {sum(stale.values())} entries of {scope.baseline} are not needed any more; write it anew", err=True)
    if scope.diff_base is not None:
        from preflight.changes import Changes

        report = Changes(scope.diff_base, checker).only(report)
    return report


def _shown(settings: Settings) -> str:
    import json

    where = settings.path or "no settings file"
    return f"# {where}\n{json.dumps(dict(settings.raw), indent=2, default=str)}\n"
