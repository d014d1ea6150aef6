"""What the user sees on the terminal when a submission is refused: the place, the numbers, the fix, in 80 columns.

Slurm itself puts "sbatch: error: lua: " in front of each line, which leaves 60.
"""

from __future__ import annotations

import textwrap

from preflight.gate.verdict import REFUSE, Verdict
from preflight.report.escapes import counted, plain
from preflight.source.finding import Finding, Severity
from preflight.source.language import columns, local

WIDTH = 60
SHOWN = 8
UNJUDGED = "rules are final here: nothing passes without a verdict"


def told(verdict: Verdict, recorded: bool = True) -> list[str]:
    """Lines for people; empty when there is nothing to say. recorded: an override is written down."""
    if verdict.problem:
        return _unjudged(verdict)
    findings = [f for f in verdict.report.findings if f.severity is Severity.ERROR]
    if not findings:
        return []
    lines = _wrapped(_headline(verdict, len(findings), recorded))
    for finding in findings[:SHOWN]:
        lines += _one(finding)
    if len(findings) > SHOWN:
        lines.append(local(f"and {len(findings) - SHOWN} more; run preflight check on the script"))
    if verdict.word == "refuse" and verdict.code and verdict.submission.kind == "sbatch":
        lines += _way_out(verdict)
    return lines


def _unjudged(verdict: Verdict) -> list[str]:
    """Why there is no verdict; an input error begins with the name of what was read."""
    name = f"{verdict.submission.name}: "
    read = verdict.problem.startswith(name)
    problem = name + local(verdict.problem[len(name) :]) if read else local(verdict.problem)
    if verdict.code == REFUSE:
        return [*_wrapped(local(f"preflight: refused: no verdict: {problem}")), local(UNJUDGED)]
    return _wrapped(local(f"preflight: no verdict: {problem}"))


def _way_out(verdict: Verdict) -> list[str]:
    if verdict.final:
        return [local("no override lifts this")]
    command = "scontrol update ... comment=" if verdict.submission.change else "sbatch --comment="
    return [
        local("to run it all the same, and have that recorded:"),
        f'  {command}"preflight-override=WHY"{"" if verdict.submission.change else " ..."}',
    ]


def _headline(verdict: Verdict, errors: int, recorded: bool) -> str:
    count = local(counted(errors, "error"))
    if verdict.overridden and recorded:
        return local(f"preflight: overridden and recorded, with {count}")
    if verdict.overridden:
        return local(f"preflight: overridden, with {count}")
    if verdict.code == 0:
        return local(f"preflight: would be refused, {count} (report only)")
    return local(f"preflight: refused, {count}")


def _one(finding: Finding) -> list[str]:
    lines = _wrapped(f"{finding.path}:{finding.line}: {local(finding.message)}", "  ") + _wrapped(
        f"[{finding.rule}]", "    "
    )
    line = finding.span.source.line(finding.line).strip()
    lines += [f"    | {textwrap.shorten(plain(line), WIDTH - 8, placeholder=' …')}"] if line else []
    ways = [fix for fix in (finding.fix, *finding.alternatives[:1]) if fix is not None]
    return lines + [
        line
        for word, fix in zip(("fix", "or"), ways, strict=False)
        for line in _wrapped(f"{local(word)}: {local(fix.title)}", "    ")
    ]


def _wrapped(text: str, indent: str = "") -> list[str]:
    text = plain(text)
    width = WIDTH * len(text) // max(columns(text), 1)  # a Chinese character takes two columns
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
