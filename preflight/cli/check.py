"""preflight check"""

from typing import Annotated

import typer

from preflight.cli import completion
from preflight.cli.check_files import Mode, run
from preflight.cli.codes import LEVELS
from preflight.cli.options import Inputs, JobFacts, Output, Rules, Scope, takes

FailOn = Annotated[
    str | None, typer.Option("--fail-on", metavar="|".join(LEVELS), help="Lowest severity that fails the check.", autocompletion=completion.levels)
]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 whatever is found.", show_default=False)]
ShowSettings = Annotated[bool, typer.Option("--show-settings", help="Print the settings that hold, and stop.", show_default=False)]
Statistics = Annotated[bool, typer.Option("--statistics", help="Count findings by rule instead of listing them.", show_default=False)]
Suggest = Annotated[bool, typer.Option("--suggest", help="Search for layouts that cure what is found (slower).", show_default=False)]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Check every file anew, and remember nothing.", show_default=False)]
Jobs = Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=0, help="Processes that check files; 0, the default: as many as pay.", show_default=False)]
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
    no_cache: NoCache = False,
    jobs: Jobs = 0,
) -> int:
    """Check configs and launch scripts, or the command after --.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 wrong usage or unreadable input, 3 preflight itself failed.
    """
    return run(inputs, facts, rules, out, scope, ctx.obj, Mode(fail_on, exit_zero, show_settings, statistics, watch, suggest, no_cache, jobs))
