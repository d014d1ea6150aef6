"""GitLab code quality."""

from __future__ import annotations

from pathlib import PurePath

from preflight.checking.engine import Report
from preflight.report.fingerprint import fingerprints
from preflight.report.json_encoding import dumped
from preflight.report.source_excerpts_and_escapes import Look, plain
from preflight.source.finding import Severity

LEVELS = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.NOTE: "info"}


def render(report: Report, look: Look = Look()) -> str:
    """A list of issues with fingerprints that are stable when lines shift."""
    issues = [
        {
            "description": plain(finding.message),
            "check_name": finding.rule,
            "fingerprint": print_,
            "severity": LEVELS[finding.severity or Severity.NOTE],
            "location": {
                "path": PurePath(finding.path).as_posix(),
                "lines": {"begin": finding.line, "end": finding.span.end_position.line},
            },
        }
        for finding, print_ in fingerprints(report.findings)
    ]
    return dumped(issues)
