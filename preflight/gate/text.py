"""What the user sees on the terminal when a submission is refused: the place, the numbers, the fix, in 80 columns.

Slurm itself puts "sbatch: error: lua: " in front of each line, which leaves 60.
"""

from __future__ import annotations

import textwrap

from preflight.gate.verdict import REFUSE, Verdict
from preflight.report.escapes import counted, plain
from preflight.source.finding import Finding, Severity

WIDTH = 60
SHOWN = 8
UNJUDGED = "rules are final here: nothing passes without a verdict"


def told(verdict: Verdict, recorded: bool = True) -> list[str]:
    """Lines for people; empty when there is nothing to say. recorded: an override is written down."""
    if verdict.problem:
        lines = _wrapped(f"preflight: {'refused: ' if verdict.code == REFUSE else ''}no verdict: {verdict.problem}")
        return [*lines, UNJUDGED] if verdict.code == REFUSE else lines
    findings = [f for f in verdict.report.findings if f.severity is Severity.ERROR]
    if not findings:
        return []
    lines = _wrapped(_headline(verdict, len(findings), recorded))
    for finding in findings[:SHOWN]:
        lines += _one(finding)
    if len(findings) > SHOWN:
        lines.append(f"and {len(findings) - SHOWN} more; run preflight check on the script")
    if verdict.word == "refuse" and verdict.code and verdict.submission.kind == "sbatch":
        lines += _way_out(verdict)
    return lines


def _way_out(verdict: Verdict) -> list[str]:
    if verdict.final:
        return ["no override lifts this"]
    command = "scontrol update ... comment=" if verdict.submission.change else "sbatch --comment="
    return [
        "to run it all the same, and have that recorded:",
        f'  {command}"preflight-override=WHY"{"" if verdict.submission.change else " ..."}',
    ]


def _headline(verdict: Verdict, errors: int, recorded: bool) -> str:
    count = counted(errors, "error")
    if verdict.overridden:
        return f"preflight: overridden{' and recorded' if recorded else ''}, with {count}"
    if verdict.code == 0:
        return f"preflight: would be refused, {count} (report only)"
    return f"preflight: refused, {count}"


def _one(finding: Finding) -> list[str]:
    lines = _wrapped(f"{finding.path}:{finding.line}: {finding.message}", "  ") + _wrapped(f"[{finding.rule}]", "    ")
    line = finding.span.source.line(finding.line).strip()
    lines += [f"    | {textwrap.shorten(plain(line), WIDTH - 8, placeholder=' …')}"] if line else []
    ways = [fix for fix in (finding.fix, *finding.alternatives[:1]) if fix is not None]
    return lines + [
        line
        for word, fix in zip(("fix", "or"), ways, strict=False)
        for line in _wrapped(f"{word}: {fix.title}", "    ")
    ]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        plain(text), WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
    )
