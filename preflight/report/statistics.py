"""The number of findings per rule, and how many are fixable."""

from __future__ import annotations

from collections import Counter

from preflight.checking.engine import Report
from preflight.report.source_excerpts_and_escapes import COLORS, Look, counted, plain
from preflight.source.finding import Safety
from preflight.source.translation import local, padded


def render(report: Report, look: Look = Look()) -> str:
    """One line per rule, most frequent first."""
    found = Counter((f.severity, f.rule) for f in report.findings if f.severity is not None)
    fixable = Counter(f.rule for f in report.findings if f.fix is not None and f.fix.safety is not Safety.SHOW)
    lines = []
    for (severity, rule), times in sorted(found.items(), key=lambda item: (-item[1], -item[0][0].rank, item[0][1])):
        fix = local(f" ({fixable[rule]} with a fix)") if fixable[rule] else ""
        name = padded(local(str(severity)), 7)
        lines.append(f"{times:>5}  {look.paint(name, COLORS[severity])}  {plain(rule)}{fix}")
    if not look.quiet:
        files = counted(len(report.files), "file")
        lines.append(f"{len(report.findings):>5}  {local(f'in {files}')}")
    return "".join(f"{line}\n" for line in lines)
