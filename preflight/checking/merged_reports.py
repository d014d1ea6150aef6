"""Merges reports."""

from __future__ import annotations

from collections.abc import Iterable

from preflight.checking.engine import Report, distinct, order
from preflight.source.finding import Finding
from preflight.source.typing_without_import import Any


def merge(reports: Iterable[Report]) -> Report:
    """One report from many; a finding that two runs report on a shared line appears once."""
    reports = list(reports)
    if len(reports) == 1:
        return reports[0]

    def all_of(name: str) -> tuple[Any, ...]:
        return tuple(item for report in reports for item in getattr(report, name))

    return Report(
        findings=tuple(sorted(distinct(sorted(all_of("findings"), key=_rank)), key=order)),
        jobs=all_of("jobs"),
        unknown=all_of("unknown"),
        crashes=all_of("crashes"),
        skipped=all_of("skipped"),
        suppressed=sum(report.suppressed for report in reports),
        checked=all_of("checked"),
        errors=tuple(dict.fromkeys(all_of("errors"))),
        reads=tuple(dict.fromkeys(all_of("reads"))),
        looked=tuple(dict.fromkeys(all_of("looked"))),
        rules=tuple({rule.id: rule for rule in sorted(all_of("rules"), key=lambda rule: rule.id)}.values()),
    )


def _rank(finding: Finding) -> int:
    return finding.severity.rank if finding.severity is not None else 0
