"""A report with its findings in the language of the call, for formats that print messages as they are."""

from __future__ import annotations

from preflight.checking.engine import Report
from preflight.source.finding import Finding, Fix, Related
from preflight.source.record import replace
from preflight.source.translation import local


def translated(report: Report) -> Report:
    """The same report with sentences translated: messages, titles of fixes, labels, reasons. Ids and keys stay."""
    unknown = tuple(one._replace(because=local(one.because)) for one in report.unknown)
    errors = tuple(one._replace(message=local(one.message)) for one in report.errors)
    return replace(report, findings=tuple(map(_finding, report.findings)), unknown=unknown, errors=errors)


def _finding(finding: Finding) -> Finding:
    fix = _fix(finding.fix) if finding.fix is not None else None
    others, related = tuple(map(_fix, finding.alternatives)), tuple(map(_related, finding.related))
    return replace(finding, message=local(finding.message), fix=fix, alternatives=others, related=related)


def _fix(fix: Fix) -> Fix:
    return fix._replace(title=local(fix.title), cost=local(fix.cost) if fix.cost else "")


def _related(related: Related) -> Related:
    return related._replace(label=local(related.label) if related.label else "")
