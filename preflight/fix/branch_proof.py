"""A fix repairs one branch of a script; it must not cause errors in the other branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Report
from preflight.source.finding import Message, NotProven, Severity
from preflight.source.source_file import InputError, Source

WOULD_BREAK = "it would cause a new error where {where}: {rules}"


def prove_branches(workspace: Workspace, before: Mapping[str, Source], after: Mapping[str, Source]) -> None:
    """Raises NotProven if edited scripts have a new error in a branch that the check does not follow. before: the
    original texts of the sources, by name; after: the edited ones.
    """
    for name, new in after.items():
        old = before.get(name)
        if old is not None and old.text != new.text and _may_branch(new):
            _prove_one(workspace, old, new, dict(after))


def _may_branch(source: Source) -> bool:
    from preflight.loaders.file_kinds import is_script

    return is_script(source)


def _prove_one(workspace: Workspace, old: Source, new: Source, others: dict[str, Source]) -> None:
    """Compare the findings of each branch of one script before and after."""
    from preflight.loaders.shell.branch_variants import other_branches

    ours, theirs = other_branches(new), {one.where: one.text for one in other_branches(old)}
    for where, text in ours:
        was = theirs.get(where)
        if was is None or was == text:
            continue
        try:
            now = _errors(workspace.check({**others, new.name: new.changed(text)}))
            if not now:
                continue
            had = _errors(workspace.check({**others, old.name: old.changed(was)}))
        except InputError:
            continue
        if more := now - had:
            raise NotProven(Message(WOULD_BREAK, where=where, rules=", ".join(sorted(more))))


def _errors(report: Report) -> Counter[str]:
    return Counter(finding.rule for finding in report.findings if finding.severity is Severity.ERROR)
