"""The proof for all offered fixes: edit, read again, check, estimate; there must be no new error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Report
from preflight.fix.branch_proof import prove_branches
from preflight.fix.edited_texts import Sources, apply
from preflight.source.finding import Finding, Kind, NotProven, Severity
from preflight.source.record import NamedTuple
from preflight.source.source_file import CannotEdit, InputError, Source


def prove_better(before: Report, after: Report, fixed: Sequence[Finding]) -> None:
    """Raises NotProven unless the fixed findings are gone and there is no new error."""
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
    }  # a layout that can be read now may be too large
    had = Counter((f.rule, f.path) for f in before.findings if f.severity is Severity.ERROR)
    have = Counter(
        (f.rule, f.path)
        for f in after.findings
        if f.severity is Severity.ERROR and not (f.kind is Kind.MEMORY and f.path in seen)
    )
    if new := have - had:
        raise NotProven(f"it would cause a new error: {', '.join(sorted(rule for rule, _ in new))}")
    if len(after.jobs) < len(before.jobs):
        raise NotProven("the file would no longer be recognized")


def _errors_at(finding: Finding, report: Report) -> int:
    """The errors of a finding's rule at its setting: with other numbers it is still the same fault."""
    if finding.severity is not Severity.ERROR:
        return 0
    return sum(
        f.severity is Severity.ERROR and (f.rule, f.path, f.key) == (finding.rule, finding.path, finding.key)
        for f in report.findings
    )


class Made(NamedTuple):
    """The result of edits: the new texts by name, the findings whose fixes they contain, and the report on the final
    texts, with its estimates."""

    edited: Sources
    taken: list[Finding]
    report: Report


def made(
    workspace: Workspace,
    before: Report,
    findings: Sequence[Finding],
    edited: Mapping[str, Source] = {},
    *,
    partial: bool = False,
) -> Made | str:
    """The texts after the fixes of findings, proven to change in nothing else, or the reason why the fixes fail.
    edited: texts that already differ from those of the workspace; before: the report on them."""
    texts = {source.name: source for source in workspace.sources} | dict(edited)
    try:
        new, taken, documents = apply(findings, before, texts, partial=partial)
        return Made(new, taken, workspace.check({**edited, **new}, documents))
    except (CannotEdit, NotProven, InputError) as error:
        return str(error)


def proven(
    workspace: Workspace,
    before: Report,
    findings: Sequence[Finding],
    edited: Mapping[str, Source] = {},
    *,
    partial: bool = False,
) -> Made | str:
    """The same if it is an improvement: the finding is gone, and there is no new error; otherwise the reason."""
    found = made(workspace, before, findings, edited, partial=partial)
    if isinstance(found, str):
        return found
    try:
        prove_better(before, found.report, found.taken)
        prove_branches(workspace, {source.name: source for source in workspace.sources} | dict(edited), found.edited)
    except NotProven as error:
        return str(error)
    return found
