"""preflight check: reports the findings of files and commands."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from preflight.checking.configured_checker import Checker
from preflight.checking.discovery import Named
from preflight.checking.engine import Report
from preflight.cli import checker_setup, output
from preflight.cli.cached_and_parallel_checks import Memo, Teller
from preflight.cli.exit_codes import OK
from preflight.cli.exit_handling import LEVELS, say
from preflight.cli.options import AtSite, Inputs, JobFacts, Output, Rules, Scope, Started, option, takes
from preflight.cli.options import Outcome as How
from preflight.cli.output import refuse_unread
from preflight.report.source_excerpts_and_escapes import Look, plain
from preflight.report.text import shown
from preflight.report.text_summary import added
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError
from preflight.source.spelling import did_you_mean
from preflight.source.translation import local
from preflight.source.typing_without_import import Annotated, Any

PAUSE = 0.3


def watch(check: Callable[[], int], files: Callable[[], Iterable[Path]]) -> int:
    """Run a check now and after every change of the files, until it is interrupted; returns the last exit code."""
    code = 0
    try:
        while True:
            before = _stamps(files())
            code = check()
            print("preflight: watching, Ctrl-C ends it", file=sys.stderr, flush=True)
            while _stamps(files()) == before:
                time.sleep(PAUSE)
            if sys.stdout.isatty():
                print("\x1b[2J\x1b[H", end="")
    except KeyboardInterrupt:
        return code


def _stamps(files: Iterable[Path]) -> dict[Path, tuple[int, int] | None]:
    return {path: _stamp(path) for path in files}


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


LEVEL = option(
    "--fail-on",
    metavar="|".join(LEVELS),
    help="Lowest severity at which a finding fails the check.",
    completion="levels",
)
JOBS = "Number of worker processes (0 means automatic)."


class Mode(NamedTuple):
    """The options that `check` alone has."""

    fail_on: Annotated[str | None, LEVEL] = None
    exit_zero: Annotated[bool, option("--exit-zero", help="Exit with 0 even if there are findings.")] = False
    show_files: Annotated[bool, option("--show-files", help="Print the names of the files to check, and exit.")] = False
    show_settings: Annotated[bool, option("--show-settings", help="Print the settings in effect, and exit.")] = False
    statistics: Annotated[bool, option("--statistics", help="Count findings by rule instead of listing them.")] = False
    watch: Annotated[bool, option("--watch", "-w", help="Check again whenever a file changes.")] = False
    suggest: Annotated[bool, option("--suggest", help="Search for layouts that resolve the findings (slower).")] = False
    no_cache: Annotated[bool, option("--no-cache", help="Do not use the cache.")] = False
    fix: Annotated[bool, option("--fix", help="Apply safe fixes, and report the remaining findings.")] = False
    unsafe: Annotated[bool, option("--unsafe", help="With --fix, also apply fixes that may change training.")] = False
    diff: Annotated[bool, option("--diff", help="Print the changes that --fix would make, and write nothing.")] = False
    jobs: Annotated[int, option("--jobs", "-j", metavar="N", min=0, help=JOBS)] = 0


@takes(Inputs, JobFacts, AtSite, Rules, Output, Scope, Mode)
def check(
    inputs: Inputs,
    facts: JobFacts,
    at: AtSite,
    rules: Rules,
    out: Output,
    scope: Scope,
    mode: Mode,
    command: Started = None,
) -> int:
    """Check configs and launch scripts, or the command after `--`.

    Exit codes: 0 if no finding is at or above --fail-on, 1 if there is such a finding, 2 for wrong usage or unreadable
    input, 3 if preflight itself fails.
    """
    _verify(mode)
    if mode.diff:
        return _changes(inputs, (facts, at), rules, out, mode, command)
    checker = checker_setup.checker(facts, rules, lenient=True, at=at)
    if mode.suggest:
        from preflight.layouts.layout_fixes import suggest

        checker.suggest = suggest
    if mode.show_settings or mode.show_files:
        return _show(checker, checker_setup.named(checker, inputs), mode, facts)
    level = _level(mode, checker)
    if mode.fix and (code := _fixed(inputs, (facts, at), rules, out, mode, command)) is not None:
        return code
    if mode.statistics:
        out = out._replace(output_format=["statistics", *(name for name in out.output_format or () if ":" in name)])

    def once() -> int:
        if out.output_format in (None, ["text"]) and out.output_file is None and scope == Scope():
            return _told(checker, inputs, command, out, mode, level)
        return _once(checker, inputs, command, out, scope, level)

    if not mode.watch:
        return once()

    return watch(once, lambda: [item.path for item in checker_setup.named(checker, inputs)])


def _level(mode: Mode, checker: Checker) -> str:
    """The lowest severity at which a finding fails the check. Raises InputError for an unknown one."""
    level = "never" if mode.exit_zero else mode.fail_on or checker.settings.fail_on
    if level not in LEVELS:
        raise InputError(f"--fail-on must be one of {', '.join(LEVELS)}, not {level!r}{did_you_mean(level, LEVELS)}")
    return level


def _show(checker: Checker, files: Sequence[Named], mode: Mode, facts: JobFacts) -> int:
    """Print the files of a call, or the settings that apply here and to them."""
    if mode.show_files:
        say("".join(f"{plain(item.name)}\n" for item in files))
        return OK
    every = {id(one): one for one in (checker.settings, *(checker.settings_of(item.path) for item in files))}
    lines = [f"# ignored: {plain(path)}: {local(why)}" for path, why in checker.ignored.items()]
    for found in every.values():
        lines += [f"# {plain(str(found.path)) if found.path else local(NO_FILE)}", *_toml(found.raw, ())]
    given = {name.replace("_", "-"): value for name, value in facts._asdict().items() if value}
    if given:
        lines += [f"# {local(BY_CALL)}", *_toml(given, ())]
    say("".join(f"{line}\n" for line in lines))
    return OK


NO_FILE, BY_CALL = "no settings file", "on the command line, which takes precedence"


def _toml(settings: Mapping[str, Any], above: Sequence[str]) -> Iterator[str]:
    """A TOML table: its own values, then its tables."""
    inner = {name: value for name, value in settings.items() if _holds_tables(value)}
    yield from (f"{_key(name)} = {_value(value)}" for name, value in settings.items() if name not in inner)
    for name, value in inner.items():
        path = (*above, name)
        heading = ".".join(map(_key, path))
        for one in value if isinstance(value, list) else [value]:
            yield f"[[{heading}]]" if isinstance(value, list) else f"[{heading}]"
            yield from _toml(one, path)


def _holds_tables(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else _value(name)


def _value(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def _verify(mode: Mode) -> None:
    """Raises InputError for options that cannot be combined."""
    if mode.unsafe and not (mode.fix or mode.diff):
        raise InputError("--unsafe needs --fix or --diff, because nothing is changed without them")
    if mode.diff and mode.fix:
        raise InputError("--diff writes nothing, but --fix does; use only one of them")


def _changes(
    inputs: Inputs,
    facts: tuple[JobFacts, AtSite],
    rules: Rules,
    out: Output,
    mode: Mode,
    command: list[str] | None,
) -> int:
    """Print what `--fix` would change."""
    from preflight.cli.fix import fix

    return fix(inputs, *facts, rules, How(out.color, out.quiet), diff=True, unsafe=mode.unsafe, command=command)


def _fixed(
    inputs: Inputs,
    facts: tuple[JobFacts, AtSite],
    rules: Rules,
    out: Output,
    mode: Mode,
    command: list[str] | None,
) -> int | None:
    """Fix first. The exit code if the fixed text was written to stdout; otherwise None, and the check follows."""
    from preflight.cli.fix import fix

    code = fix(inputs, *facts, rules, How(out.color, True), unsafe=mode.unsafe, command=command)
    return code if checker_setup.STDIN in (inputs.paths or []) else None


def _once(checker: Checker, inputs: Inputs, command: list[str] | None, out: Output, scope: Scope, level: str) -> int:
    from preflight.checking.merged_reports import merge

    targets, style = (
        output.formats(out, checker.plugins),
        _look(out)._replace(fails="error" if level == "never" else level),
    )
    report = merge(checker_setup.reports(checker, inputs, command))
    refuse_unread(checker, inputs, report.checked)
    found = len(report.findings)
    report = _narrowed(report, checker, scope)
    if scope.baseline is not None:
        style = style._replace(known=found - len(report.findings))
    nothing = not (report.checked or report.errors or report.crashes or inputs.allow_unclaimed)
    if not nothing or out.output_format:
        output.write(report, targets, style)
    return output.nothing("checked", report.skipped, checker) if nothing else output.exit_code(report, level)


def _told(checker: Checker, inputs: Inputs, command: list[str] | None, out: Output, mode: Mode, level: str) -> int:
    """The common case, text on stdout: each report is discarded after its file."""
    look = _look(out)
    memo = None if mode.no_cache else Memo.of(checker, look, inputs.allow_unclaimed)
    teller = Teller(checker, look, memo, lenient=inputs.allow_unclaimed)
    single = map(teller.of, checker_setup.typed(checker, inputs, command))
    told = added([*single, *teller.tell(checker_setup.named(checker, inputs), mode.jobs)])
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
    """The report without the findings of a baseline, or those that existed before a change."""
    if scope.baseline is not None:
        from preflight.checking.baseline import Baseline

        report, stale = Baseline.read(Path(scope.baseline)).hide(report)
        if stale:
            number = sum(stale.values())
            entries = "1 entry" if number == 1 else f"{number} entries"
            text = local(f"{scope.baseline} has {entries} without a finding; record the baseline again")
            print(f"preflight: {text}", file=sys.stderr)
    if scope.diff_base is not None:
        from preflight.checking.findings_since_revision import Changes

        report = Changes(scope.diff_base, checker).only(report)
    return report
