"""What the user sees on the terminal when a submission is refused: 80 columns, the place, the numbers, the fix."""

from __future__ import annotations

import textwrap

from preflight.finding import Finding, Severity
from preflight.gate.verdict import Verdict
from preflight.report.plain import plain

WIDTH = 78
SHOWN = 8


def told(verdict: Verdict) -> list[str]:
    """Lines for people; empty when there is nothing to say."""
    if verdict.problem:
        return _wrapped(f"no verdict: {verdict.problem}")
    findings = [f for f in verdict.report.findings if f.severity is Severity.ERROR]
    if not findings:
        return []
    lines = _wrapped(_headline(verdict, len(findings)))
    for finding in findings[:SHOWN]:
        lines += _one(finding)
    if len(findings) > SHOWN:
        lines.append(f"and {len(findings) - SHOWN} more; run preflight check on the script")
    if verdict.word == "refuse" and verdict.code:
        lines += _wrapped('to run all the same: sbatch --comment="preflight-override=REASON"')
    return lines


def _headline(verdict: Verdict, errors: int) -> str:
    count = f"{errors} error{'s' if errors > 1 else ''}"
    if verdict.overridden:
        return f"overridden and recorded, with {count}:"
    if verdict.code == 0:
        return f"would be refused, {count} (report only):"
    return f"refused, {count}:"


def _one(finding: Finding) -> list[str]:
    lines = _wrapped(f"{finding.path}:{finding.line}: {finding.message} [{finding.rule}]", "  ")
    line = finding.span.source.line(finding.line).strip()
    lines += [f"    | {textwrap.shorten(plain(line), WIDTH - 8, placeholder=' …')}"] if line else []
    return lines + (_wrapped(f"fix: {finding.fix.title}", "    ") if finding.fix else [])


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(plain(text), WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=True)
