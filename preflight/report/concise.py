"""One line per finding, as compilers write it: what editors, logs and fixtures read."""

from __future__ import annotations

from preflight.checking.engine import Report
from preflight.report.terminal import Look, plain
from preflight.source.finding import Finding


def line(finding: Finding) -> str:
    """`path:line:column: severity: message [rule]`."""
    return plain(
        f"{finding.path}:{finding.line}:{finding.column}: {finding.severity}: {finding.message} [{finding.rule}]"
    )


def render(report: Report, look: Look = Look()) -> str:
    """Every finding of a report, one a line."""
    return "".join(f"{line(finding)}\n" for finding in report.findings)
