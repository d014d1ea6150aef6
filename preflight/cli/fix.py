"""preflight fix"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from preflight import atomic
from preflight.checking import merge
from preflight.cli import output, session
from preflight.cli.app import FOUND, OK
from preflight.cli.options import Inputs, JobFacts, Rules, takes
from preflight.cli.options import Outcome as How
from preflight.cli.stream import say
from preflight.engine import Report, Unreadable
from preflight.finding import Finding
from preflight.fixer import Fixed, Outcome
from preflight.report.look import Look
from preflight.report.plain import plain
from preflight.source import InputError, Source

Diff = Annotated[bool, typer.Option("--diff", help="Print the changes and write nothing.", show_default=False)]
Unsafe = Annotated[bool, typer.Option("--unsafe", help="Apply fixes that may change batch, loss curve or speed.", show_default=False)]
STATES = ("fixed", "no mechanical fix", "not proven", "needs --unsafe", "advice only")
COLORS = {"fixed": "green", "not proven": "red"}


@takes(Inputs, JobFacts, Rules, How)
def fix(inputs: Inputs, facts: JobFacts, rules: Rules, how: How, diff: Diff = False, unsafe: Unsafe = False) -> int:
    """Apply fixes that are proven.

    A fix is written when only the intended settings change, every comment stays, the finding is gone and no error is new.

    Exit codes: 0 nothing is left that fails a check, 1 something is left (or --diff shows changes), 2 wrong usage.
    """
    style = output.look(how.color, quiet=how.quiet)
    checker = session.checker(facts, rules)
    results, unread, edited = [], list[InputError](), False
    for source, asked in session.sources(checker, inputs, unread):
        try:
            result = checker.fix(source, unsafe=unsafe)
        except InputError as error:
            if checker.ours(source, error, asked=asked):
                unread.append(InputError(error.message, error.path or source.name, error.line, error.column))
            continue
        try:
            _deliver(source, result, diff, style)
        except InputError as error:
            unread.append(error)
            continue
        results.append(result)
        edited = edited or bool(result.edited)
    errors = tuple(Unreadable(error.path, error.line, error.column, error.message) for error in unread)
    report = merge([*(result.report for result in results), Report(errors=errors)])
    if not (report.checked or errors or inputs.allow_unclaimed):
        return output.nothing("checked", report.skipped, checker)
    told = "".join(f"{line}\n" for line in _lines([o for result in results for o in result.outcomes], style, diff))
    if not report.checked:
        told = ""
    if diff or "-" in (inputs.paths or []):
        sys.stderr.write(told)
    else:
        say(told)
    output.write(report, [], style)
    code = output.exit_code(report, checker.settings.fail_on)
    return FOUND if diff and edited and code == OK else code


def _deliver(source: Source, result: Fixed, diff: bool, style: Look) -> None:
    """Write what was fixed: to the file, to stdout for stdin, or as a diff."""
    for name, new in result.edited.items():
        old = result.before[name]
        if diff:
            say("".join(_diff(old, new, style)))
        elif name == source.name and source.path is None:
            continue
        else:
            atomic.write(old, new)
    if source.path is None and not diff:
        say(result.edited.get(source.name, source).text)


def _diff(old: Source, new: Source, style: Look) -> Sequence[str]:
    lines = difflib.unified_diff(old.text.splitlines(), new.text.splitlines(), old.name, old.name, lineterm="")
    colors = {"+": "green", "-": "red", "@": "cyan"}
    return [style.paint(plain(line), colors[line[0]]) + "\n" if line[:1] in colors else plain(line) + "\n" for line in lines]


def _lines(outcomes: Sequence[Outcome], style: Look, diff: bool) -> list[str]:
    """A line per finding and a count of each state."""
    lines = [_line(outcome.finding, outcome, style) for outcome in outcomes]
    counts = {state: sum(outcome.state == state for outcome in outcomes) for state in STATES}
    done = [f"{number} {'would be fixed' if diff and state == 'fixed' else state}" for state, number in counts.items() if number]
    return lines if style.quiet else [*lines, f"{', '.join(done).capitalize() or 'Nothing to fix'}."]


def _line(finding: Finding, outcome: Outcome, style: Look) -> str:
    place = style.paint(plain(f"{finding.path}:{finding.line}:{finding.column}"), "bold")
    state = style.paint(outcome.state, COLORS.get(outcome.state, "yellow"))
    detail = f" ({plain(outcome.detail)})" if outcome.detail else ""
    return f"{place}: {state}: {plain(finding.message)} {style.paint(f'[{plain(finding.rule)}]', 'cyan')}{detail}"
