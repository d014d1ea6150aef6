"""What would shrink a run, as `memory` prints it: changes that the estimate names, each made in the text, read again,
checked and estimated; the figures are those of the final text."""

from __future__ import annotations

from preflight.checking.engine import Report
from preflight.checking.workspace import Workspace
from preflight.fix.attempts import Attempts
from preflight.job import Job
from preflight.memory.advice import LEAST, SHOWN, Saving, savings
from preflight.source.finding import Finding, Kind, Severity


def proven_savings(workspace: Workspace, job: Job) -> list[Saving]:
    """The changes that save most of those that can be written and that no rule refuses, the largest saving first.

    workspace: the text of the run, to try them in.
    """
    relayout, now = job.arguments.relayout, job.memory.worst
    if relayout is None or now is None or job.withheld:
        return []
    candidates = savings(job.plan, job.cluster)
    report = workspace.check() if candidates else Report()
    own = next((one for one in report.jobs if one.documents[0].run == job.documents[0].run), None)
    if own is None:
        return []
    attempt, had, found = Attempts(workspace, report, own), _errors(report.findings), []
    for saving in candidates:
        edits = relayout(job.sizes._replace(**saving.sizes))
        tried = attempt.proven(edits) if edits else "it cannot be written"
        if isinstance(tried, str) or _errors(tried[1]) - had or tried[0].withheld:
            continue
        worst = tried[0].memory.worst
        if worst is not None and now.required - worst.required > LEAST * now.required:
            found.append(saving._replace(required=worst.required, saved=now.required - worst.required))
    return sorted(found, key=lambda saving: -saving.saved)[:SHOWN]


def _errors(findings: tuple[Finding, ...]) -> set[tuple[str, str]]:
    """The errors but for those of the memory, whose numbers change."""
    errors = (f for f in findings if f.severity is Severity.ERROR and f.kind is not Kind.MEMORY)
    return {(finding.rule, finding.message) for finding in errors}
