"""preflight fix"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated

from preflight.checking.checker import Checker, Suggest
from preflight.checking.failure import unreadable
from preflight.checking.merging import merge
from preflight.cli import output, session
from preflight.cli.codes import FOUND, OK
from preflight.cli.fix_dialogue import Dialogue
from preflight.cli.fix_summary import distinct_outcomes, outcome_lines
from preflight.cli.options import Inputs, JobFacts, Rules, Started, option, takes
from preflight.cli.options import Outcome as How
from preflight.cli.stream import say
from preflight.cli.unread import refuse_unread
from preflight.fix.boundary import Boundary
from preflight.fix.choices import fix_by_choice
from preflight.fix.fixer import Fixed, fix_source
from preflight.loaders import COMMAND
from preflight.report.escapes import plain
from preflight.report.style import Look
from preflight.source.language import local
from preflight.source.text import InputError, Source

Diff = Annotated[bool, option("--diff", help="Print the changes and write nothing.")]
CHANGES = "Apply fixes that may change batch, loss curve or speed."
Unsafe = Annotated[bool, option("--unsafe", help=CHANGES)]
OUTSIDE = "Also change files that lie outside of what is named: targets of links, configs that a config names."
Follow = Annotated[bool, option("--follow", help=OUTSIDE)]

CHOOSE = "Ask about every finding which way out to take, and show what each changes."
Interactive = Annotated[bool, option("--interactive", "-i", help=CHOOSE)]


@takes(Inputs, JobFacts, Rules, How)
def fix(
    inputs: Inputs,
    facts: JobFacts,
    rules: Rules,
    how: How,
    diff: Diff = False,
    unsafe: Unsafe = False,
    follow: Follow = False,
    interactive: Interactive = False,
    command: Started = None,
) -> int:
    """Apply fixes that are proven: to files, or to the script of the command after --.

    A fix is written when only the intended settings change, every comment stays, the finding is gone and no error is
    new. Files are changed that are named, or lie in the folder of one that is, or below it; others with --follow.

    Exit codes: 0 nothing is left that fails a check, 1 something is left (or --diff shows changes), 2 wrong usage.
    """
    style = output.look(how.color, quiet=how.quiet)
    checker = session.checker(facts, rules)
    inputs, command = _named(inputs, command)
    texts = _texts(checker, inputs, command, errors := list[InputError]())
    named = [*(inputs.paths or ()), inputs.stdin_filename or session.STDIN, *(command or ())]
    inside = Boundary([path for path in named if path != session.STDIN], follow=follow)
    suggest = _suggest() if unsafe or interactive else None
    choose = partial(fix_by_choice, ask=Dialogue(style), inside=inside, suggest=suggest) if interactive else None
    apply = partial(fix_source, checker, unsafe=unsafe, suggest=suggest, inside=inside, by_choice=choose)
    fixed = _all_read(checker, inputs, _each(checker, texts, apply, errors))
    results = _delivered(fixed, partial(_deliver, diff=diff, style=style), errors)
    report = merge([*(result.report for result in results), *map(unreadable, errors)])
    if not (report.checked or report.errors or report.crashes or inputs.allow_unclaimed):
        return output.nothing("checked", report.skipped, checker)
    aside = diff or "-" in (inputs.paths or []) or any(source.path is None for source, _, _ in texts)
    (sys.stderr.write if aside else say)(_summary(results, style, would=diff) if report.checked else "")
    output.write(report, [], style)
    code = output.exit_code(report, checker.settings.fail_on)
    return FOUND if diff and code == OK and any(result.edited for result in results) else code


def _all_read(
    checker: Checker, inputs: Inputs, fixed: Iterator[tuple[Source, Fixed, bool]]
) -> Iterator[tuple[Source, Fixed, bool]]:
    """What was fixed, before any of it is written. Raises InputError where nothing reads a name that is set."""
    if not checker.facts.set:
        return fixed
    every = tuple(fixed)
    refuse_unread(checker, inputs, [source.name for source, result, _ in every if result.report.checked])
    return iter(every)


def _summary(results: Iterable[Fixed], style: Look, *, would: bool) -> str:
    """What was changed and what is left, in lines."""
    outcomes = distinct_outcomes(outcome for result in results for outcome in result.outcomes)
    return "".join(f"{line}\n" for line in outcome_lines(outcomes, style, would=would))


Text = tuple[Source, bool, bool]
"""A text to fix; whether the caller holds it for a config; whether what becomes of it goes to stdout."""


def _named(inputs: Inputs, command: list[str] | None) -> tuple[Inputs, list[str] | None]:
    """What is to be fixed, where nothing but names of files may follow --."""
    if command and all(map(os.path.exists, command)):
        return inputs._replace(paths=[*(inputs.paths or ()), *command]), None
    return inputs, command


def _texts(checker: Checker, inputs: Inputs, command: list[str] | None, errors: list[InputError]) -> list[Text]:
    """What is to be fixed. What cannot be read is among the errors."""
    stdin = session.STDIN in (inputs.paths or [])
    found = [
        (source, asked, stdin and not i) for i, (source, asked) in enumerate(session.sources(checker, inputs, errors))
    ]
    if command:
        source = session.started(command)
        found.append((source, True, source.path is None))
    return found


def _each(
    checker: Checker, texts: Iterable[Text], apply: Callable[[Source], Fixed], errors: list[InputError]
) -> Iterator[tuple[Source, Fixed, bool]]:
    """Fix text after text: what became of them. What could not be read is among the errors."""
    for source, asked, printed in texts:
        try:
            yield source, apply(source), printed
        except InputError as error:
            if checker.ours(source, error, asked=asked):
                errors.append(InputError(error.message, error.path or source.name, error.line, error.column))


def _delivered(
    fixed: Iterable[tuple[Source, Fixed, bool]],
    deliver: Callable[[Source, Fixed, bool], None],
    errors: list[InputError],
) -> list[Fixed]:
    """Write text after text: what became of them. What could not be written is among the errors."""
    results = list[Fixed]()
    for source, result, printed in fixed:
        try:
            deliver(source, result, printed)
        except InputError as error:
            errors.append(error)
            continue
        results.append(result)
    return results


def _suggest() -> Suggest:
    """What finds other layouts; where a search needs numpy and it is not installed, that is said, and the rest goes
    on."""
    from preflight.layouts.suggest import suggest

    told = set[str]()

    def absent(name: str, why: str) -> None:
        if name not in told:
            told.add(name)
            text = local(f"no other layout is searched for: {why}")
            print(f"preflight: {plain(name)}: {plain(text)}", file=sys.stderr)

    return partial(suggest, absent=absent)


def _deliver(source: Source, result: Fixed, printed: bool, diff: bool, style: Look) -> None:
    """Write what was fixed: to the file, to stdout where the text came from there, or as a diff."""
    for name, new in result.edited.items():
        old = result.before[name]
        if diff:
            say("".join(_diff(old, new, style)))
        elif name == source.name and printed:
            continue
        else:
            from preflight.source import atomic

            atomic.write(old, new, output.tell_lock)
    if printed and not diff and (source.name != COMMAND or result.report.checked):
        text = result.edited.get(source.name, source).text
        say(text if text.endswith("\n") else f"{text}\n")


def _diff(old: Source, new: Source, style: Look) -> Sequence[str]:
    import difflib

    lines = difflib.unified_diff(old.text.splitlines(), new.text.splitlines(), old.name, old.name, lineterm="")
    colors = {"+": "green", "-": "red", "@": "cyan"}
    return [
        style.paint(plain(line), colors[line[0]]) + "\n" if line[:1] in colors else plain(line) + "\n" for line in lines
    ]
