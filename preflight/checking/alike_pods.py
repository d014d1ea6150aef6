"""Master and Worker of a manifest usually run one command: what is wrong in both is one finding, with both places."""

from __future__ import annotations

from preflight.checking.engine import Report
from preflight.source.finding import Finding, Related
from preflight.source.record import replace

ALSO = "the same here"


def fold_alike(report: Report) -> Report:
    """The report with one finding for what several launches of a manifest have on lines of the same text."""
    manifests = [job.documents[0].source.name for job in report.jobs if job.documents[0].kind == "manifest"]
    several = {name for name in manifests if manifests.count(name) > 1}
    if not several:
        return report
    first: dict[tuple[str, ...], int] = {}
    kept: list[Finding] = []
    for finding in report.findings:
        key = _identity(finding)
        if finding.path in several and key in first:
            at = first[key]
            kept[at] = replace(kept[at], related=(*kept[at].related, Related(finding.span, ALSO)))
            continue
        first.setdefault(key, len(kept))
        kept.append(finding)
    return replace(report, findings=tuple(kept))


def _identity(finding: Finding) -> tuple[str, ...]:
    line = finding.span.source.line(finding.line).strip()
    return finding.path, finding.rule, str(finding.severity), finding.message, line
