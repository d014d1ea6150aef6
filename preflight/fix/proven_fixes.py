"""The offers of a report: the proven fixes of each finding, without those that cause an error."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Report
from preflight.fix.branch_proof import prove_branches
from preflight.fix.fix_proof import Made, made, prove_better, proven
from preflight.source.finding import Finding, Fix, NotProven, Safety
from preflight.source.record import replace

MOST_WORK = 120_000
"""Total cost limit of attempts during the check of one file; `fix` proves its fixes regardless of cost."""
ATTEMPT, SLOWER = 2_000, 8_000
"""The fixed cost of an attempt besides the checked characters, and the number of characters that double it."""

MOST_BRANCHES = 12_000
"""Cost limit of an attempt in which the other branches of a script are also followed; `fix` always follows them."""

MOST_TOGETHER = 4
"""The factor by which the combined proof of the safe fixes of a file may cost more."""


def with_proven_offers(workspace: Workspace, report: Report, whole: Workspace | None = None) -> Report:
    """The report with only the proven fixes; unchanged if nothing is offered. whole: the same texts under every rule,
    if the workspace checks only some: no rule may find a new error.
    """
    if not any(_offered(finding) for finding in report.findings):
        return report
    workspace, before = (workspace, report) if whole is None else (whole, whole.check())
    return replace(report, findings=tuple(proven_offers(workspace, before, report.findings)))


def proven_offers(workspace: Workspace, report: Report, findings: Sequence[Finding]) -> list[Finding]:
    """Some findings of a report, or of the same texts, with only their proven fixes."""
    return _Offers(workspace, report).kept(findings)


def _offered(finding: Finding) -> bool:
    return any(fix.edits for fix in _ways(finding))


def _ways(finding: Finding) -> list[Fix]:
    return [fix for fix in (finding.fix, *finding.alternatives) if fix is not None]


def _with(finding: Finding, ways: Sequence[Fix]) -> Finding:
    """The finding with these fixes."""
    return replace(finding, fix=ways[0] if ways else None, alternatives=tuple(ways[1:]))


class _Offers:
    """The offers of one report, each tried only once."""

    def __init__(self, workspace: Workspace, report: Report) -> None:
        self.workspace, self.report = workspace, report
        characters = sum(len(source.text) for source in workspace.sources)
        self.size = ATTEMPT + characters + characters**2 // SLOWER
        self.work = 0
        self.tried: dict[str, Made | str] = {}

    def kept(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings with the fixes that passed the proof."""
        if self.size > MOST_WORK:
            return [_with(f, [fix for fix in _ways(f) if not fix.edits]) for f in findings]
        together = self._together(findings)
        return [self._of(f, alike=id(f) in together) if _offered(f) else f for f in findings]

    def _together(self, findings: Sequence[Finding]) -> set[int]:
        """The findings with safe fixes, which `preflight fix` applies together."""
        safe = [f for f in findings if f.fix is not None and f.fix.edits and f.fix.safety is Safety.SAFE]
        if len(safe) < 2 or len(safe) * self.size > MOST_WORK * MOST_TOGETHER:
            return set()
        found = proven(self.workspace, self.report, safe, partial=True)
        self.work += self.size
        return set() if isinstance(found, str) else {id(finding) for finding in found.taken}

    def _of(self, finding: Finding, *, alike: bool) -> Finding:
        ways = _ways(finding)
        held = [fix for n, fix in enumerate(ways) if not fix.edits or (alike and n == 0) or self._holds(finding, fix)]
        return _with(finding, held)

    def _holds(self, finding: Finding, fix: Fix) -> bool:
        """Whether a fix removes the finding without causing a new error."""
        change = repr(fix.edits)  # a value may be a list, which is not hashable
        if change not in self.tried:
            self.work += self.size
            if self.work > MOST_WORK:
                return False
            self.tried[change] = made(self.workspace, self.report, [replace(finding, fix=fix)])
        after = self.tried[change]
        if isinstance(after, str):
            return False
        try:
            prove_better(self.report, after.report, [finding])
            if self.size <= MOST_BRANCHES:
                prove_branches(self.workspace, {source.name: source for source in self.workspace.sources}, after.edited)
        except NotProven:
            return False
        return True
