"""preflight fix"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

from preflight.checking.checker import Checker, Suggest, merge
from preflight.checking.failure import unreadable
from preflight.cli import output, session
from preflight.cli.codes import FOUND, OK
from preflight.cli.fix_summary import outcome_lines
from preflight.cli.options import Inputs, JobFacts, Rules, option, takes
from preflight.cli.options import Outcome as How
from preflight.cli.stream import say
from preflight.fix.boundary import Boundary
from preflight.fix.fixer import Fixed, fix_source
from preflight.report.escapes import plain
from preflight.report.style import Look
from preflight.source.text import InputError, Source

Diff = Annotated[bool, option("--diff", help="Print the changes and write nothing.")]
CHANGES = "Apply fixes that may change batch, loss curve or speed."
Unsafe = Annotated[bool, option("--unsafe", help=CHANGES)]
OUTSIDE = "Also change files that lie outside of what is named: targets of links, configs that a config names."
Follow = Annotated[bool, option("--follow", help=OUTSIDE)]


@takes(Inputs, JobFacts, Rules, How)
def fix(
    inputs: Inputs,
    facts: JobFacts,
    rules: Rules,
    how: How,
    diff: Diff = False,
    unsafe: Unsafe = False,
    follow: Follow = False,
) -> int:
    """Apply fixes that are proven.

    A fix is written when only the intended settings change, every comment stays, the finding is gone and no error is
    new. Files are changed that are named, or lie in the folder of one that is, or below it; others with --follow.

    Exit codes: 0 nothing is left that fails a check, 1 something is left (or --diff shows changes), 2 wrong usage.
    """
    style = output.look(how.color, quiet=how.quiet)
    checker = session.checker(facts, rules)
    named = [*(inputs.paths or ()), inputs.stdin_filename or session.STDIN]
    inside = Boundary([path for path in named if path != session.STDIN], follow=follow)
    apply = partial(fix_source, checker, unsafe=unsafe, suggest=_suggest() if unsafe else None, inside=inside)
    results, errors = _each(checker, inputs, apply, partial(_deliver, diff=diff, style=style))
    report = merge([*(result.report for result in results), *map(unreadable, errors)])
    if not (report.checked or report.errors or report.crashes or inputs.allow_unclaimed):
        return output.nothing("checked", report.skipped, checker)
    told = "".join(f"{line}\n" for line in outcome_lines([o for result in results for o in result.outcomes], style, would=diff))
    if not report.checked:
        told = ""
    if diff or "-" in (inputs.paths or []):
        sys.stderr.write(told)
    else:
        say(told)
    output.write(report, [], style)
    code = output.exit_code(report, checker.settings.fail_on)
    return FOUND if diff and code == OK and any(result.edited for result in results) else code


def _each(
    checker: Checker,
    inputs: Inputs,
    apply: Callable[[Source], Fixed],
    deliver: Callable[[Source, Fixed], None],
) -> tuple[list[Fixed], list[InputError]]:
    """Fix and write file after file: what became of them, and what could not be read or written."""
    results, errors = list[Fixed](), list[InputError]()
    for source, asked in session.sources(checker, inputs, errors):
        try:
            result = apply(source)
        except InputError as error:
            if checker.ours(source, error, asked=asked):
                errors.append(InputError(error.message, error.path or source.name, error.line, error.column))
            continue
        try:
            deliver(source, result)
        except InputError as error:
            errors.append(error)
            continue
        results.append(result)
    return results, errors


def _suggest() -> Suggest:
    from preflight.layouts.suggest import suggest  # needs numpy

    return suggest


def _deliver(source: Source, result: Fixed, diff: bool, style: Look) -> None:
    """Write what was fixed: to the file, to stdout for stdin, or as a diff."""
    for name, new in result.edited.items():
        old = result.before[name]
        if diff:
            say("".join(_diff(old, new, style)))
        elif name == source.name and source.path is None:
            continue
        else:
            from preflight.source import atomic

            atomic.write(old, new)
    if source.path is None and not diff:
        say(result.edited.get(source.name, source).text)


def _diff(old: Source, new: Source, style: Look) -> Sequence[str]:
    import difflib

    lines = difflib.unified_diff(old.text.splitlines(), new.text.splitlines(), old.name, old.name, lineterm="")
    colors = {"+": "green", "-": "red", "@": "cyan"}
    return [
        style.paint(plain(line), colors[line[0]]) + "\n" if line[:1] in colors else plain(line) + "\n" for line in lines
    ]
