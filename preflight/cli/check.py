"""preflight check"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from preflight.checking.checker import Checker
from preflight.checking.engine import Report
from preflight.cli import output, session
from preflight.cli.codes import LEVELS, OK
from preflight.cli.memo import Memo
from preflight.cli.options import Inputs, JobFacts, Output, Rules, Scope, Started, option, takes
from preflight.cli.options import Outcome as How
from preflight.cli.stream import say
from preflight.cli.telling import Teller
from preflight.cli.unread import refuse_unread
from preflight.report.escapes import plain
from preflight.report.style import Look
from preflight.report.text import shown
from preflight.report.totals import added
from preflight.source.language import local
from preflight.source.record import NamedTuple
from preflight.source.spelling import did_you_mean
from preflight.source.text import InputError

LEVEL = option("--fail-on", metavar="|".join(LEVELS), help="Lowest severity that fails the check.", completion="levels")
JOBS = "Processes that check files; 0, the default, chooses."


class Mode(NamedTuple):
    """The options that `check` alone has."""

    fail_on: Annotated[str | None, LEVEL] = None
    exit_zero: Annotated[bool, option("--exit-zero", help="Exit with 0 whatever is found.")] = False
    show_settings: Annotated[bool, option("--show-settings", help="Print the settings in effect, and exit.")] = False
    statistics: Annotated[bool, option("--statistics", help="Count findings by rule instead of listing them.")] = False
    watch: Annotated[bool, option("--watch", "-w", help="Check again whenever a file changes.")] = False
    suggest: Annotated[bool, option("--suggest", help="Search for layouts that cure what is found (slower).")] = False
    no_cache: Annotated[bool, option("--no-cache", help="Check every file anew, and remember nothing.")] = False
    fix: Annotated[bool, option("--fix", help="Apply proven fixes, and report what is left.")] = False
    unsafe: Annotated[bool, option("--unsafe", help="With --fix: also fixes that may change what is trained.")] = False
    jobs: Annotated[int, option("--jobs", "-j", metavar="N", min=0, help=JOBS)] = 0


@takes(Inputs, JobFacts, Rules, Output, Scope, Mode)
def check(
    inputs: Inputs,
    facts: JobFacts,
    rules: Rules,
    out: Output,
    scope: Scope,
    mode: Mode,
    command: Started = None,
) -> int:
    """Check configs and launch scripts, or the command after --.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 wrong usage or unreadable input,
    3 preflight itself failed.
    """
    if mode.unsafe and not mode.fix:
        raise InputError("--unsafe needs --fix: without it nothing is changed")
    checker = session.checker(facts, rules, lenient=True)
    if mode.suggest:
        from preflight.layouts.suggest import suggest

        checker.suggest = suggest
    if mode.show_settings:
        say(_shown(checker, [item.path for item in session.named(checker, inputs)]))
        return OK
    level = _level(mode, checker)
    if mode.fix and (code := _fixed(inputs, facts, rules, out, mode, command)) is not None:
        return code
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


def _level(mode: Mode, checker: Checker) -> str:
    """The least severity of a finding that fails. Raises InputError for one that there is not."""
    level = "never" if mode.exit_zero else mode.fail_on or checker.settings.fail_on
    if level not in LEVELS:
        raise InputError(f"--fail-on is one of {', '.join(LEVELS)}, not {level!r}{did_you_mean(level, LEVELS)}")
    return level


def _fixed(
    inputs: Inputs, facts: JobFacts, rules: Rules, out: Output, mode: Mode, command: list[str] | None
) -> int | None:
    """Fix first. The exit code where stdout has the fixed text, else None: the check follows."""
    from preflight.cli.fix import fix

    code = fix(inputs, facts, rules, How(out.color, True), unsafe=mode.unsafe, command=command)
    return code if session.STDIN in (inputs.paths or []) else None


def _once(checker: Checker, inputs: Inputs, command: list[str] | None, out: Output, scope: Scope, level: str) -> int:
    from preflight.checking.merging import merge

    targets, style = (
        output.formats(out, checker.plugins),
        _look(out)._replace(fails="error" if level == "never" else level),
    )
    report = merge(session.reports(checker, inputs, command))
    refuse_unread(checker, inputs, report.checked)
    report = _narrowed(report, checker, scope)
    nothing = not (report.checked or report.errors or report.crashes or inputs.allow_unclaimed)
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
    refuse_unread(checker, inputs, told.checked, told.reads)
    if not (told.checked or told.unreadable or told.crashed or inputs.allow_unclaimed):
        return output.nothing("checked", told.skipped, checker)
    say(shown(told, look))
    output.complain(told.problems)
    return output.code(told.worst, level, crashed=told.crashed, unreadable=told.unreadable)


def _look(out: Output) -> Look:
    return output.look(out.color, quiet=out.quiet, verbose=out.verbose, unknown=out.show_unknown)._replace(
        grouped=not out.no_group
    )


def _narrowed(report: Report, checker: Checker, scope: Scope) -> Report:
    """The report without what a baseline knows, or what was there before a change."""
    if scope.baseline is not None:
        from preflight.checking.baseline import Baseline

        report, stale = Baseline.read(Path(scope.baseline)).hide(report)
        if stale:
            number = sum(stale.values())
            entries = "1 entry" if number == 1 else f"{number} entries"
            text = local(f"not needed any more: {entries} of {scope.baseline}; write it anew")
            print(f"preflight: {text}", file=sys.stderr)
    if scope.diff_base is not None:
        from preflight.checking.changes import Changes

        report = Changes(scope.diff_base, checker).only(report)
    return report


def _shown(checker: Checker, paths: Sequence[Path]) -> str:
    """The settings in effect here and for paths that have others, and the files that do not count."""
    import json

    every = {id(found): found for found in (checker.settings, *map(checker.settings_of, paths))}
    lines = [f"# ignored: {plain(path)}: {local(why)}" for path, why in checker.ignored.items()]
    for found in every.values():
        lines += [f"# {found.path or 'no settings file'}", json.dumps(dict(found.raw), indent=2, default=str)]
    return "".join(f"{line}\n" for line in lines)
