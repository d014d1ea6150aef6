"""A Markdown summary, for job summaries and merge request comments."""

from __future__ import annotations

import re

from preflight.engine import Report
from preflight.finding import Finding, Severity
from preflight.report.look import Look
from preflight.report.plain import counted, plain


def render(report: Report, look: Look = Look()) -> str:
    """Counts, then a table of findings."""
    counts = [counted(sum(f.severity is s for f in report.findings), str(s)) for s in Severity]
    lines = ["## preflight", "", f"{counted(len(report.checked), 'file')} checked: {', '.join(counts)}", ""]
    if report.findings:
        lines += ["| place | severity | finding | rule | fix |", "|---|---|---|---|---|"]
        lines += [_row(finding) for finding in report.findings]
    lines += [f"- could not be read: {_cell(str(error))}" for error in report.errors]
    return "\n".join(lines).rstrip() + "\n"


def _row(finding: Finding) -> str:
    fix = finding.fix.title if finding.fix else ""
    cells = (f"{finding.path}:{finding.line}", str(finding.severity), finding.message, f"`{finding.rule}`", fix)
    return "| " + " | ".join(cell if cell.startswith("`") else _cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", plain(text))
