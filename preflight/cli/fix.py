"""preflight fix: writes, or shows, the proven fixes."""

from __future__ import annotations

import difflib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from preflight.checking.configured_checker import Checker, Suggest
from preflight.checking.file_failures import unreadable
from preflight.checking.merged_reports import merge
from preflight.cli import checker_setup, output
from preflight.cli.exit_codes import FOUND, OK
from preflight.cli.exit_handling import say
from preflight.cli.options import AtSite, Inputs, JobFacts, Rules, Started, option, takes
from preflight.cli.options import Outcome as How
from preflight.cli.output import refuse_unread
from preflight.fix.edit_integrity import NOT_WRITTEN
from preflight.fix.fixer import Fixed, Outcome, State, fix_source
from preflight.fix.interactive_fixes import Way, fix_by_choice
from preflight.fix.permitted_fixes import Boundary
from preflight.loaders.file_kinds import COMMAND
from preflight.report.source_excerpts_and_escapes import Look, counted, plain
from preflight.report.text import one
from preflight.source.finding import Finding, Severity
from preflight.source.record import replace
from preflight.source.source_file import InputError, Source
from preflight.source.translation import joined, local
from preflight.source.typing_without_import import Annotated


class Dialogue:
    """The prompts of one call, printed to stderr so that stdout contains only the output of the command."""

    def __init__(self, look: Look) -> None:
        self.look = look

    def __call__(self, finding: Finding, ways: Sequence[Way], now: dict[str, Source]) -> int | None:
        """The chosen fix, None to skip the finding. Raises StopIteration to stop asking."""
        lines = [*one(replace(finding, fix=None, alternatives=()), self.look)][:-1]
        for number, way in enumerate(ways, 1):
            beside = ", ".join(filter(None, (way.changes, way.fix.cost)))
            said = f" ({beside})" if beside else ""
            lines.append(f"  {self.look.paint(f'[{number}]', 'bold')} {plain(way.fix.title)}{plain(said)}")
            lines += [f"      {line}" for line in self._diff(way, now)]
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        while True:
            numbers = "1" if len(ways) == 1 else f"1-{len(ways)}"
            sys.stderr.write(f"Apply {numbers}, [s]kip or [q]uit? ")
            sys.stderr.flush()
            answer = sys.stdin.readline()
            if not answer or answer.strip().lower() in ("q", "quit"):
                raise StopIteration
            if answer.strip().lower() in ("s", "skip", ""):
                return None
            if answer.strip().isdecimal() and 1 <= int(answer) <= len(ways):
                return int(answer) - 1

    def _diff(self, way: Way, now: dict[str, Source]) -> list[str]:
        """The lines that a fix changes."""
        found = []
        for name, new in way.edited.items():
            old = now[name].text if name in now else ""
            lines = difflib.unified_diff(old.splitlines(), new.text.splitlines(), n=0, lineterm="")
            found += [line for line in list(lines)[2:] if not line.startswith("@")]
        return [self.look.paint(plain(line), "red" if line[0] == "-" else "green") for line in found]


_WAYS: dict[State, str] = {
    "needs --unsafe": "with --unsafe",
    "needs a choice": "with --interactive",
    "needs --follow": "with --follow",
    "needs --select": "with --select RULE, as notes",
    "advice only": "by hand, see `preflight check`",
    "not proven": "with a fix that cannot be verified",
    "no mechanical fix": "without a fix",
}


def distinct_outcomes(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """One outcome if several runs read the same line."""
    found: dict[object, Outcome] = {}
    for outcome in outcomes:
        finding = outcome.finding
        place = (finding.rule, finding.path, finding.span.start, finding.message)
        if place not in found or outcome.state == "fixed":
            found[place] = outcome
    return list(found.values())


def outcome_lines(outcomes: Sequence[Outcome], style: Look, *, would: bool) -> Iterator[str]:
    """The summary lines of a call. would: this is a dry run."""
    done = [outcome for outcome in outcomes if outcome.state == "fixed"]
    left = [outcome for outcome in outcomes if outcome.state != "fixed"]
    yield from (_line(outcome, style, would=would) for outcome in done)
    if style.quiet:
        return
    if done:
        number = len(done)
        yield local(f"{number} would be fixed." if would else f"{number} fixed.")
    elif not left:
        yield local("Nothing to fix.")
    if left:
        yield _left(left)


def _left(left: Sequence[Outcome]) -> str:
    """The number of remaining findings, and what can be done about them."""
    severities = Counter(outcome.finding.severity for outcome in left)
    much = joined([counted(severities[severity], str(severity)) for severity in Severity if severities[severity]], "")
    states = Counter(outcome.state for outcome in left)
    ways = joined([f"{states[state]} {words}" for state, words in _WAYS.items() if states[state]], "")
    following = [outcome for outcome in left if outcome.state == "needs --follow" or outcome.detail == NOT_WRITTEN]
    elsewhere = dict.fromkeys(f" {plain(local(outcome.detail))}." for outcome in following)
    return local(f"Remaining: {much} ({ways}); `preflight check` lists them.") + "".join(elsewhere)


def _line(outcome: Outcome, style: Look, *, would: bool) -> str:
    finding = outcome.finding
    at = outcome.place or finding.span.source.position(finding.span.start)
    place = style.paint(plain(f"{finding.path}:{at.line}:{at.column}"), "bold")
    state = style.paint(local("would be fixed" if would else "fixed"), "green")
    detail = f" ({plain(local(outcome.detail))})" if outcome.detail else ""
    rule = style.paint(f"[{plain(finding.rule)}]", "cyan")
    return f"{place}: {state}: {plain(local(finding.message))} {rule}{detail}"


Diff = Annotated[bool, option("--diff", help="Print the changes and write nothing.")]
CHANGES = "Also apply fixes that may change the batch, the loss curve or the speed."
Unsafe = Annotated[bool, option("--unsafe", help=CHANGES)]
OUTSIDE = "Also change files outside the given paths, such as link targets and configs that a config names."
Follow = Annotated[bool, option("--follow", help=OUTSIDE)]

CHOOSE = "Show what each fix changes, and ask which one to apply for each finding."
Interactive = Annotated[bool, option("--interactive", "-i", help=CHOOSE)]


@takes(Inputs, JobFacts, AtSite, Rules, How)
def fix(
    inputs: Inputs,
    facts: JobFacts,
    at: AtSite,
    rules: Rules,
    how: How,
    diff: Diff = False,
    unsafe: Unsafe = False,
    follow: Follow = False,
    interactive: Interactive = False,
    command: Started = None,
) -> int:
    """Apply safe fixes to files, or to the script that the command after `--` runs.

    A fix is written only if it changes nothing but the intended settings, keeps every comment, removes the finding and
    causes no new error. Only the given files, and files in or below their folders, are changed; for other files, use
    --follow.

    Exit codes: 0 if no finding that fails a check remains, 1 if one remains (or --diff shows changes), 2 for wrong
    usage.
    """
    style = output.look(how.color, quiet=how.quiet)
    checker = checker_setup.checker(facts, rules, at=at)
    inputs, command = _named(inputs, command)
    texts = _texts(checker, inputs, command, errors := list[InputError]())
    named = [*(inputs.paths or ()), inputs.stdin_filename or checker_setup.STDIN, *(command or ())]
    inside = Boundary([path for path in named if path != checker_setup.STDIN], follow=follow)
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
    """The fixes, before any of them is written. Raises InputError if a name that is set is never read."""
    if not checker.facts.set:
        return fixed
    every = tuple(fixed)
    refuse_unread(checker, inputs, [source.name for source, result, _ in every if result.report.checked])
    return iter(every)


def _summary(results: Iterable[Fixed], style: Look, *, would: bool) -> str:
    """Lines about the changes and the remaining findings."""
    outcomes = distinct_outcomes(outcome for result in results for outcome in result.outcomes)
    return "".join(f"{line}\n" for line in outcome_lines(outcomes, style, would=would))


Text = tuple[Source, bool, bool]
"""A text to fix; whether the caller states that it is a config; whether the result goes to stdout."""


def _named(inputs: Inputs, command: list[str] | None) -> tuple[Inputs, list[str] | None]:
    """The inputs to fix, if only file names may follow `--`."""
    if command and all(map(os.path.exists, command)):
        return inputs._replace(paths=[*(inputs.paths or ()), *command]), None
    return inputs, command


def _texts(checker: Checker, inputs: Inputs, command: list[str] | None, errors: list[InputError]) -> list[Text]:
    """The inputs to fix; unreadable ones are among the errors."""
    stdin = checker_setup.STDIN in (inputs.paths or [])
    sources = enumerate(checker_setup.sources(checker, inputs, errors))
    found = [(source, asked, stdin and not i) for i, (source, asked) in sources]
    if command:
        source = checker_setup.started(command)
        found.append((source, True, source.path is None))
    return found


def _each(
    checker: Checker, texts: Iterable[Text], apply: Callable[[Source], Fixed], errors: list[InputError]
) -> Iterator[tuple[Source, Fixed, bool]]:
    """Fix the texts one by one; unreadable ones are among the errors."""
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
    """Write the texts one by one; those that cannot be written are among the errors."""
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
    """The search for other layouts; if numpy is required and not installed, that is reported and everything else
    continues."""
    from preflight.layouts.layout_fixes import suggest

    told = set[str]()

    def absent(name: str, why: str) -> None:
        if name not in told:
            told.add(name)
            text = local(f"no other layouts were searched: {why}")
            print(f"preflight: {plain(name)}: {plain(text)}", file=sys.stderr)

    return partial(suggest, absent=absent)


def _deliver(source: Source, result: Fixed, printed: bool, diff: bool, style: Look) -> None:
    """Write a fixed text: to the file, to stdout if it was read from stdin, or as a diff."""
    for name, new in result.edited.items():
        old = result.before[name]
        if diff:
            say("".join(_diff(old, new, style)))
        elif name == source.name and printed:
            continue
        else:
            from preflight.source import writing

            writing.write(old, new, output.tell_lock)
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
