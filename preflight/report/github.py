"""GitHub workflow commands: annotations on the files of a pull request."""

from __future__ import annotations

from preflight.checking.engine import Report, Unreadable
from preflight.checking.file_failures import crash_line
from preflight.report.source_excerpts_and_escapes import Look, plain
from preflight.source.finding import Finding, Severity

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(report: Report, look: Look = Look()) -> str:
    """One command per finding and per unreadable file."""
    lines = [_line(finding) for finding in report.findings]
    lines += [_unreadable(error) for error in report.errors]
    lines += [f"::error file={_property(c.path)},title=crash::{_data(crash_line(c))}" for c in report.crashes]
    return "".join(f"{line}\n" for line in lines)


def _unreadable(error: Unreadable) -> str:
    return f"::error file={_property(error.path)},line={max(error.line, 1)},title=unreadable::{_data(error.message)}"


def _line(finding: Finding) -> str:
    assert finding.severity is not None
    end = finding.span.end_position
    where = f"file={_property(finding.path)},line={finding.line},col={finding.column},endLine={end.line}"
    if end.line == finding.line:
        where += f",endColumn={end.column}"
    message = finding.message + (f" (fix: {finding.fix.title})" if finding.fix else "")
    return f"::{LEVELS[finding.severity]} {where},title={_property(f'preflight {finding.rule}')}::{_data(message)}"


def _data(text: str) -> str:
    return "%0A".join(plain(line) for line in text.replace("%", "%25").replace("\r", "%0D").split("\n"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
