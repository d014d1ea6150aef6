"""The proof that a report is better than the one before: what was fixed is gone, and no error is new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from preflight.checking.engine import Report
from preflight.source.finding import Finding, Kind, Severity
from preflight.source.refusal import NotProven


def prove_better(before: Report, after: Report, fixed: Sequence[Finding]) -> None:
    """Raises NotProven unless the fixed findings are gone and no error is new."""
    for finding in fixed:
        was = sum(
            f.rule == finding.rule and f.key == finding.key and f.message == finding.message for f in before.findings
        )
        now = sum(
            f.rule == finding.rule and f.key == finding.key and f.message == finding.message for f in after.findings
        )
        if now >= was or _errors_at(finding, after) >= _errors_at(finding, before) > 0:
            raise NotProven("the finding would still be there")
    seen = {
        job.documents[0].source.name for job in before.jobs if job.memory.verdict == "unknown"
    }  # a layout that can be read now may turn out too large
    had = Counter((f.rule, f.path) for f in before.findings if f.severity is Severity.ERROR)
    have = Counter(
        (f.rule, f.path)
        for f in after.findings
        if f.severity is Severity.ERROR and not (f.kind is Kind.MEMORY and f.path in seen)
    )
    if new := have - had:
        raise NotProven(f"it would cause a new error: {', '.join(sorted(rule for rule, _ in new))}")
    if len(after.jobs) < len(before.jobs):
        raise NotProven("the file would no longer be recognised")


def _errors_at(finding: Finding, report: Report) -> int:
    """The errors of a finding's rule at its setting: with other numbers it is the same fault."""
    if finding.severity is not Severity.ERROR:
        return 0
    return sum(
        f.severity is Severity.ERROR and (f.rule, f.path, f.key) == (finding.rule, finding.path, finding.key)
        for f in report.findings
    )
