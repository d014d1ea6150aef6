"""What `check` does once its options are read; a call without options comes here straight, which saves loading typer."""

from __future__ import annotations

import sys
from pathlib import Path

from preflight.checking import Checker, merge
from preflight.cli import output, session
from preflight.cli.codes import LEVELS, OK
from preflight.cli.memo import Memo
from preflight.cli.options import Inputs, JobFacts, Output, Rules, Scope
from preflight.cli.stream import say
from preflight.cli.telling import Teller
from preflight.engine import Report
from preflight.record import NamedTuple
from preflight.report.look import Look
from preflight.report.text import shown
from preflight.report.told import added
from preflight.settings import Settings
from preflight.source import InputError
from preflight.spelling import did_you_mean


class Mode(NamedTuple):
    """The options that `check` alone has."""

    fail_on: str | None = None
    exit_zero: bool = False
    show_settings: bool = False
    statistics: bool = False
    watch: bool = False
    suggest: bool = False
    no_cache: bool = False
    jobs: int = 0


def run(
    inputs: Inputs,
    facts: JobFacts = JobFacts(),
    rules: Rules = Rules(),
    out: Output = Output(),
    scope: Scope = Scope(),
    command: list[str] | None = None,
    mode: Mode = Mode(),
) -> int:
    """Check, and print the report. Raises InputError."""
    checker = session.checker(facts, rules)
    checker.suggest = mode.suggest
    if mode.show_settings:
        say(_shown(checker.settings))
        return OK
    level = "never" if mode.exit_zero else mode.fail_on or checker.settings.fail_on
    if level not in LEVELS:
        raise InputError(f"--fail-on is one of {', '.join(LEVELS)}, not {level!r}{did_you_mean(level, LEVELS)}")
    if mode.statistics:
        out = out._replace(output_format=["statistics", *(name for name in out.output_format or () if ":" in name)])

    def once() -> int:
        if out.output_format in (None, ["text"]) and out.output_file is None and scope == Scope():
            return _told(checker, inputs, command, out, mode, level)
        return _once(checker, inputs, command, out, scope, level)

    if not mode.watch:
        return once()
    from preflight.cli.watch import watch as watching

    return watching(once, lambda: [item.path for item in session.named(checker, inputs)])


def _once(checker: Checker, inputs: Inputs, command: list[str] | None, out: Output, scope: Scope, level: str) -> int:
    targets, style = output.formats(out, checker.plugins), _look(out)._replace(fails="error" if level == "never" else level)
    report = _narrowed(merge(session.reports(checker, inputs, command)), checker, scope)
    nothing = not (report.checked or report.errors or inputs.allow_unclaimed)
    if not nothing or out.output_format:
        output.write(report, targets, style)
    return output.nothing("checked", report.skipped, checker) if nothing else output.exit_code(report, level)


def _told(checker: Checker, inputs: Inputs, command: list[str] | None, out: Output, mode: Mode, level: str) -> int:
    """The usual case, the text on stdout: no report outlives its file."""
    look = _look(out)
    memo = None if mode.no_cache else Memo.of(checker, look, inputs.allow_unclaimed)
    teller = Teller(checker, look, memo, lenient=inputs.allow_unclaimed)
    single = map(teller.of, session.typed(checker, inputs, command))
    told = added([*single, *teller.tell(session.named(checker, inputs), mode.jobs)])
    if not (told.checked or told.unreadable or inputs.allow_unclaimed):
        return output.nothing("checked", told.skipped, checker)
    say(shown(told, look))
    output.complain(told.problems)
    return output.code(told.worst, level, crashed=told.crashed, unreadable=told.unreadable)


def _look(out: Output) -> Look:
    return output.look(out.color, quiet=out.quiet, verbose=out.verbose, unknown=out.show_unknown)


def _narrowed(report: Report, checker: Checker, scope: Scope) -> Report:
    """The report without what a baseline knows, or what was there before a change."""
    if scope.baseline is not None:
        from preflight.baseline import Baseline

        report, stale = Baseline.read(Path(scope.baseline)).hide(report)
        if stale:
            number = sum(stale.values())
            entries = "1 entry" if number == 1 else f"{number} entries"
            print(f"preflight: not needed any more: {entries} of {scope.baseline}; write it anew", file=sys.stderr)
    if scope.diff_base is not None:
        from preflight.changes import Changes

        report = Changes(scope.diff_base, checker).only(report)
    return report


def _shown(settings: Settings) -> str:
    import json

    where = settings.path or "no settings file"
    return f"# {where}\n{json.dumps(dict(settings.raw), indent=2, default=str)}\n"
