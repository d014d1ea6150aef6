"""One line per finding, in the format of compilers, for editors, logs and test fixtures."""

from __future__ import annotations

from preflight.checking.engine import Report
from preflight.report.source_excerpts_and_escapes import Look, plain
from preflight.source.finding import Finding


def line(finding: Finding) -> str:
    """`path:line:column: severity: message [rule]`."""
    return plain(
        f"{finding.path}:{finding.line}:{finding.column}: {finding.severity}: {finding.message} [{finding.rule}]"
    )


def render(report: Report, look: Look = Look()) -> str:
    """The findings of a report, one per line."""
    return "".join(f"{line(finding)}\n" for finding in report.findings)
