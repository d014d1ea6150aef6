"""Findings as comma-separated values."""

from __future__ import annotations

import csv
import io

from preflight import Report
from preflight.report.source_excerpts_and_escapes import Look


def render(report: Report, look: Look) -> str:
    """A header and a row per finding."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["path", "line", "rule", "severity", "message"])
    writer.writerows([f.path, f.line, f.rule, f.severity, f.message] for f in report.findings)
    return out.getvalue()
