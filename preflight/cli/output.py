"""Reports in the requested formats: destinations, colors, exit codes, failures."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path

from preflight.checking.configured_checker import Checker
from preflight.checking.engine import Report
from preflight.checking.file_failures import crash_line
from preflight.cli.exit_codes import FAILED, FOUND, OK, USAGE
from preflight.cli.exit_handling import say
from preflight.cli.options import Compared, Inputs, Output, Printed
from preflight.loaders.file_kinds import COMMAND
from preflight.plugins.manager import PluginError, Plugins
from preflight.report.source_excerpts_and_escapes import Look, plain
from preflight.source.extras import missing
from preflight.source.finding import Message, Severity
from preflight.source.source_file import InputError
from preflight.source.spelling import did_you_mean, meant, nearest
from preflight.source.translation import local
from preflight.source.writing import write_report


def deliver(text: str, file: str | None, taken: Iterable[str] = ()) -> None:
    """Write a text to stdout, or to a file. Raises InputError if that fails. taken: input files, which must not be
    overwritten.
    """
    if file is None:
        say(text)
    else:
        write_report(file, text, taken)


def read_for(report: Report) -> tuple[str, ...]:
    """The files that a report is about, and the other files that were read."""
    named = (*report.checked, *report.skipped, *(e.path for e in report.errors), *(c.path for c in report.crashes))
    return (*named, *(finding.path for finding in report.findings), *report.looked)


def refuse_unread(check: Checker, inputs: Inputs, checked: Iterable[str], reads: Iterable[str] = ()) -> None:
    """Raise InputError if the call sets a name that none of its files reads; warn if settings do.

    checked: the files with a run. reads: names read in other processes, or earlier.
    """
    if not any(True for _ in checked):
        return
    check.names.read.update(reads)
    for name, value in (check.facts.set or {}).items():
        if name not in check.names.read:
            known = {_folded(one): one for one in reversed(check.names.known)}
            close = known.get(nearest(_folded(name), known) or "")
            raise InputError(f"--set {name}={value}: no checked file reads {name}{meant(close)}")
    for found in check.every_settings():
        said = [name for name in found.facts.set or () if name not in check.names.read]
        if said and found.path is not None and _covered(str(found.root), inputs.paths or []):
            told = Message("[set] {names:and}: no checked file reads it", names=tuple(said))
            print(f"preflight: {plain(os.path.relpath(found.path))}: {local(told)}", file=sys.stderr)


def _covered(root: str, paths: Iterable[str]) -> bool:
    """Whether a call covers the whole folder of its settings: otherwise they may concern other files."""
    real = os.path.realpath(root)
    tops = (os.path.realpath(path) for path in paths if os.path.isdir(path))
    return any(os.path.commonpath([real, top]) == top for top in tops)


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")


Render = Callable[[Report, Look], str]
MOST_LOOKS = 20
"""Maximum number of skipped files opened to identify their framework."""
LONGEST_LOOK = 100_000
"""Bytes of an unrecognized file searched for options."""

WHEN = ("auto", "always", "never")


def look(color: str, *, quiet: bool = False, verbose: bool = False, unknown: bool = False) -> Look:
    """The style of stdout."""
    if color not in WHEN:
        raise InputError(f"--color must be one of {', '.join(WHEN)}, not {color!r}")
    width = _width() if sys.stdout.isatty() else 0
    colored = _colored(color)
    return Look(colored, width, quiet, verbose, unknown, links=colored and _opens_links())


def printed(output: Printed | Compared, formats: Sequence[str] = ("text", "json")) -> Look:
    """The style of the text of a command that describes runs. Raises InputError for an unsupported format."""
    if output.output_format not in formats:
        *first, last = formats
        raise InputError(f"this command prints {', '.join(first)} or {last}, not {output.output_format!r}")
    style = look(output.color)
    return style._replace(color=False, width=0) if output.output_file else style


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns


def _colored(when: str) -> bool:
    if when != "auto":
        return when == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _opens_links() -> bool:
    """Whether stdout is a terminal that shows hyperlinks, or at least ignores them: the Linux console may not."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "linux")


FOR_PEOPLE = ("text", "html", "statistics")
"""Formats that are entirely in the language of the call, including that of the locale."""


def formats(output: Output, plugins: Plugins) -> list[tuple[Render, Path | None]]:
    """The reporters of a call, each with its output file (None: stdout). Raises InputError."""
    known = plugins.reporters()
    found = []
    for asked in output.output_format or ["text"]:
        name, _, file = asked.partition(":")
        if name not in known:
            hint = did_you_mean(name, known) or f"; known formats are {', '.join(sorted(known))}"
            raise InputError(f"there is no output format {name!r}{hint}")
        render = _load(name, known[name])
        found.append((render if name in FOR_PEOPLE else in_language(render), Path(file) if file else None))
    if output.output_file:
        first = next((i for i, (_, file) in enumerate(found) if file is None), None)
        if first is None:
            raise InputError("--output-file has no effect, because every --output-format names a file")
        found[first] = (found[first][0], Path(output.output_file))
    return found


def _load(name: str, target: str) -> Render:
    module, _, attribute = target.partition(":")
    try:
        render: Render = getattr(import_module(module), attribute)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and missing(error):
            raise  # the error names the extra to install
        why = f"{type(error).__name__}: {error}"
        raise PluginError(f"output format {name!r} ({target}) cannot be loaded: {why}") from error
    return render


def in_language(render: Render) -> Render:
    """A machine-readable format: in English, with messages in another language if the call names one."""

    def rendered(report: Report, look: Look) -> str:
        from preflight.checking.localized_report import translated
        from preflight.source.translation import Asked, speaking, spoken

        shown = translated(report) if spoken().explicit else report
        with speaking(Asked()):
            return render(shown, look)

    return rendered


def write(report: Report, targets: list[tuple[Render, Path | None]], style: Look) -> None:
    """Write a report in every requested format; unreadable files and crashes go to stderr. All formats are written even
    if one fails; the first failure is raised at the end.
    """

    failures: list[Exception] = []
    for render, file in targets:
        look = style if file is None else style._replace(color=False, width=0)
        try:
            deliver(render(report, look), None if file is None else str(file), read_for(report))
        except Exception as error:
            failures.append(error)
    complain(problems(report))
    if failures:
        raise failures[0]


def nothing(done: str, skipped: Sequence[str], checker: Checker) -> int:
    """Report why nothing was checked, and return the exit code. skipped: the files that were considered."""
    why = local("no YAML file or shell script was found")
    other = _undescribed(skipped)
    if other:
        names = f"{', '.join(skipped[:3])}{' …' if len(skipped) > 3 else ''}"
        why = local(f"{names}: {other} is not described")
    elif len(skipped) > 1:
        names = f"{', '.join(skipped[:3])}{' …' if len(skipped) > 3 else ''}"
        why = local(f"{names} are not recognized as training configs")
    elif skipped == (COMMAND,):
        why = local("neither the command nor a script that it names starts a training run that preflight recognizes")
    elif skipped and _has_options(skipped[0]):
        why = local(
            f"{skipped[0]} contains training options but no launch command; pass the script that reads it, or the "
            "command: preflight check -- torchrun pretrain_gpt.py OPTIONS"
        )
    elif skipped:
        why = local(f"{skipped[0]} is not recognized as a training config")
        why += "" if checker.facts.target else local("; if it is one, name its framework with --target")
    print(plain(f"preflight: {local(f'nothing was {done}')}: {why}"), file=sys.stderr)
    return USAGE


def _has_options(name: str) -> bool:
    """Whether a file contains only options that another script passes to a training run."""
    from preflight.dialects.completion_data import is_a_text_of_options

    return is_a_text_of_options(_beginning(name))


def _undescribed(skipped: Sequence[str]) -> str:
    """The one program, known only by name, that all of these files start; "" if there is none."""
    from preflight.dialects.undescribed_programs import undescribed_in

    programs = {undescribed_in(_beginning(name)) for name in skipped[:MOST_LOOKS]}
    return programs.pop() if len(programs) == 1 and len(skipped) <= MOST_LOOKS else ""


def _beginning(name: str) -> str:
    try:
        with open(name, "rb") as file:
            return file.read(LONGEST_LOOK).decode(errors="replace")
    except OSError:
        return ""


def problems(report: Report) -> tuple[str, ...]:
    """Messages about unreadable files and crashes."""
    lines = [f"preflight: {plain(str(problem._replace(message=local(problem.message))))}" for problem in report.errors]
    for crash in report.crashes:
        lines.append(f"preflight: {plain(local(crash_line(crash)))}")
        if os.environ.get("PREFLIGHT_DEBUG"):
            lines.append(crash.trace)
    return tuple(dict.fromkeys(lines))  # settings that apply to many files are reported once


def tell_lock(name: str) -> None:
    """Report what the call is waiting for."""
    text = local(Message("waiting: {name} is locked by another process", name=name))
    print(f"preflight: {plain(text)}", file=sys.stderr, flush=True)


def complain(lines: Iterable[str]) -> None:
    """Print lines to stderr."""
    for line in lines:
        print(line, file=sys.stderr)


def exit_code(report: Report, fail_on: str) -> int:
    """1 for findings at or above the threshold, otherwise 3 for a crash, otherwise 2 for unreadable input."""
    severities = {f.severity for f in report.findings if f.severity is not None}
    worst = max(severities, key=lambda severity: severity.rank, default=None)
    return code(worst, fail_on, crashed=bool(report.crashes), unreadable=bool(report.errors))


def code(worst: Severity | None, fail_on: str, *, crashed: bool, unreadable: bool) -> int:
    """The exit code if `worst` is the highest severity found."""
    if fail_on != "never" and worst is not None and worst.rank >= Severity(fail_on).rank:
        return FOUND
    return FAILED if crashed else USAGE if unreadable else OK
