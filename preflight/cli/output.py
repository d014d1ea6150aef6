"""Writes reports: formats to stdout and files, colours, exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from preflight.cli.codes import FAILED, FOUND, OK, USAGE
from preflight.cli.options import Output
from preflight.cli.stream import say
from preflight.engine import Report
from preflight.finding import Severity
from preflight.plugins import PluginError, Plugins
from preflight.report.look import Look
from preflight.report.plain import plain
from preflight.source import InputError
from preflight.spelling import did_you_mean

Render = Callable[[Report, Look], str]
WHEN = ("auto", "always", "never")


def look(output: Output) -> Look:
    """How stdout is to look."""
    if output.color not in WHEN:
        raise InputError(f"--color is one of {', '.join(WHEN)}, not {output.color!r}")
    width = _width() if sys.stdout.isatty() else 0
    return Look(_colored(output.color), width, output.quiet, output.verbose, output.show_unknown)


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


def formats(output: Output, plugins: Plugins) -> list[tuple[Render, Path | None]]:
    """The reporters of a call, each with the file it writes to (None: stdout). Raises InputError for an unknown one."""
    known = plugins.reporters()
    found = []
    for asked in output.output_format or ["text"]:
        name, _, file = asked.partition(":")
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(sorted(known))}"
            raise InputError(f"there is no output format {name!r}{hint}")
        found.append((_load(name, known[name]), Path(file) if file else None))
    if output.output_file:
        first = next((i for i, (_, file) in enumerate(found) if file is None), None)
        if first is None:
            raise InputError("--output-file is given, but every --output-format names its own file")
        found[first] = (found[first][0], Path(output.output_file))
    return found


def _load(name: str, target: str) -> Render:
    module, _, attribute = target.partition(":")
    try:
        render: Render = getattr(import_module(module), attribute)
    except Exception as error:
        raise PluginError(f"output format {name!r} ({target}) cannot be loaded: {type(error).__name__}: {error}") from error
    return render


def write(report: Report, targets: list[tuple[Render, Path | None]], style: Look) -> None:
    """Write a report in every format that was asked for; what could not be read or crashed goes to stderr."""
    for render, file in targets:
        if file is None:
            say(render(report, style))
            continue
        try:
            file.write_text(render(report, style._replace(color=False, width=0)), encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", str(file)) from None
    complain(problems(report))


def problems(report: Report) -> tuple[str, ...]:
    """What could not be read or crashed, in lines."""
    lines = [f"preflight: {plain(str(problem))}" for problem in report.errors]
    for crash in report.crashes:
        lines.append(f"preflight: rule {crash.rule} crashed on {plain(crash.path)}: {plain(crash.error)}")
        if os.environ.get("PREFLIGHT_DEBUG"):
            lines.append(crash.trace)
    return tuple(lines)


def complain(lines: Iterable[str]) -> None:
    """Print lines to stderr."""
    for line in lines:
        print(line, file=sys.stderr)


def exit_code(report: Report, fail_on: str) -> int:
    """1 for findings at or above the threshold, else 3 for a crash, else 2 for what could not be read."""
    severities = {f.severity for f in report.findings if f.severity is not None}
    worst = max(severities, key=lambda severity: severity.rank, default=None)
    return code(worst, fail_on, crashed=bool(report.crashes), unreadable=bool(report.errors))


def code(worst: Severity | None, fail_on: str, *, crashed: bool, unreadable: bool) -> int:
    """The exit code where `worst` is the highest severity that was found."""
    if fail_on != "never" and worst is not None and worst.rank >= Severity(fail_on).rank:
        return FOUND
    return FAILED if crashed else USAGE if unreadable else OK
