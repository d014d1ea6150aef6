"""A Markdown summary, for job summaries and merge request comments."""

from __future__ import annotations

import re

from preflight.checking.engine import Report
from preflight.checking.file_failures import crash_line
from preflight.report.source_excerpts_and_escapes import Look, counted, plain
from preflight.source.finding import Finding, Severity

_LIVE = re.compile(r"@|://|www\.|mailto:|<|&|[#!~%$]\w|\bGH-\d", re.IGNORECASE)


def render(report: Report, look: Look = Look()) -> str:
    """Counts, then a table of findings."""
    counts = [counted(sum(f.severity is s for f in report.findings), str(s)) for s in Severity]
    lines = ["## preflight", "", f"{counted(len(report.files), 'file')} checked: {', '.join(counts)}", ""]
    if report.findings:
        lines += ["| place | severity | finding | rule | fix |", "|---|---|---|---|---|"]
        lines += [_row(finding) for finding in report.findings]
    lines += [f"- could not be read: {cell(str(error))}" for error in report.errors]
    lines += [f"- {cell(crash_line(crash))}" for crash in report.crashes]
    return "\n".join(lines).rstrip() + "\n"


def _row(finding: Finding) -> str:
    fix = finding.fix.title if finding.fix else ""
    place = cell(f"{finding.path}:{finding.line}")
    return f"| {place} | {finding.severity} | {cell(finding.message)} | `{finding.rule}` | {cell(fix)} |"


def cell(text: str) -> str:
    """Escaped text; as code if a part of it would become a mention, a link or an element."""
    text = plain(text)
    if not _LIVE.search(text):
        return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text.replace('|', chr(92) + '|')} {fence}"
