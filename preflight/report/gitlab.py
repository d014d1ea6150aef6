"""GitLab code quality."""

from __future__ import annotations

import json
from pathlib import PurePath

from preflight.engine import Report
from preflight.finding import Severity
from preflight.report.fingerprint import fingerprints
from preflight.report.look import Look
from preflight.report.plain import plain

LEVELS = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.NOTE: "info"}


def render(report: Report, look: Look = Look()) -> str:
    """A list of issues with fingerprints that outlive line shifts."""
    issues = [
        {
            "description": plain(finding.message),
            "check_name": finding.rule,
            "fingerprint": print_,
            "severity": LEVELS[finding.severity or Severity.NOTE],
            "location": {"path": PurePath(finding.path).as_posix(), "lines": {"begin": finding.line, "end": finding.span.end_position.line}},
        }
        for finding, print_ in fingerprints(report.findings)
    ]
    return json.dumps(issues, indent=2) + "\n"
