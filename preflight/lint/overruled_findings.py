"""Decisions after the program's own source was read: it overrides the tables of releases."""

from __future__ import annotations

from collections.abc import Iterable

from preflight.job import Job, Judged, Refused
from preflight.lint.upstream_evidence import held_in, statements_of
from preflight.source.finding import Finding, Kind, Severity
from preflight.source.record import replace

SHOWN = 3
"""Options that one finding names."""
PARSER = "argparse"
"""Used instead of a file if the option parser refuses the run."""


def decided_by_source(found: list[Finding], job: Job, own: str) -> list[Finding]:
    """The findings of a run whose program may be available. own: the rule that reports the program's refusals. If none
    of its statements refuses, errors and silent changes from tables are dropped for interpreted code. If it refuses at
    a statement that another rule describes, only that rule reports it.
    """
    judged = job.judged
    if judged is None or judged.outcome == "unread":
        return found
    found = [finding for finding in found if not _is_of_another_release(finding, job)]
    if judged.outcome != "refuses" and (resized := _resized(judged, job)):
        found = [finding for finding in found if finding.rule == own or not _rests_on(finding, resized, job)]
    if judged.outcome != "refuses" and judged.complete:
        found = [finding for finding in found if finding.rule == own or not _is_contradicted(finding, judged, job)]
    if judged.outcome != "refuses":
        keys = {finding.key[-1:] for finding in found if finding.rule != own}
        return [finding for finding in found if finding.rule != own or finding.key[-1:] not in keys]
    found = [finding for finding in found if finding.rule == own or not _is_passed(finding, judged)]
    told = [finding for finding in found if finding.rule == own]
    if judged.refused is None or not told:
        return found
    others = [finding for finding in found if finding.rule != own]
    same = [finding for finding in others if _tells(finding, judged.refused, job)]
    if not same:
        return found
    place = told[0].upstream
    return [replace(one, upstream=place) if one in same and place else one for one in others]


SIZES = ("tensor_model_parallel_size", "pipeline_model_parallel_size")


def _resized(judged: Judged, job: Job) -> frozenset[str]:
    """Sizes of the layout that the program reduces to the number of ranks, and the table of its release does not."""
    changed = (name for name in SIZES if name in judged.changes)
    return frozenset(name for name in changed if judged.changes[name].after != job.arguments.get(name).raw)


def _rests_on(finding: Finding, names: frozenset[str], job: Job) -> bool:
    """Whether a finding is about a written value that the program replaces."""
    if finding.kind in (Kind.REWRITE, Kind.MEMORY) or finding.kind.parses:
        return False
    given = [job.arguments.given(name) for name in names]
    places = {value.span.start for value in given if value is not None and value.span is not None}
    shown = {finding.span.start, *(related.span.start for related in finding.related)}
    return not names.isdisjoint(_names(finding.key[-1:])) or not places.isdisjoint(shown)


def _is_contradicted(finding: Finding, judged: Judged, job: Job) -> bool:
    """Whether a finding claims something that the program does not do."""
    if finding.kind is Kind.REWRITE:
        return bool(finding.key) and not judged.changes.keys() & set(_names(finding.key[-1:]))
    if finding.severity is not Severity.ERROR or finding.kind in (Kind.MEMORY, Kind.CUT):
        return False
    if any(_tells(finding, refused, job) for refused in judged.possible):
        return False
    return finding.kind.parses or _is_interpreted(finding.upstream, judged)


def _is_of_another_release(finding: Finding, job: Job) -> bool:
    """Whether a finding depends on a statement of a release that the program does not contain. A warning without a
    statement, such as one about values with an unexpected effect on the training, depends on none."""
    has = job.arguments.certainty.has
    if has is None or not finding.kind.of_release or has(finding.rule) is not False:
        return False
    framework = finding.rule.partition("/")[0]
    rests = statements_of(finding.rule, job.versions) or held_in(finding.rule, framework, job.versions) is not None
    return finding.severity is Severity.ERROR or bool(rests)


def _is_passed(finding: Finding, judged: Judged) -> bool:
    """Whether a refused run has already passed the claim of a finding: its options are parsed, or the program sets the
    missing value."""
    if finding.severity is not Severity.ERROR or judged.refused is None or judged.refused.parses:
        return False
    if finding.kind is Kind.ABSENCE:
        names = {*_names(finding.key), *_names(map(str, finding.values.values()))}
        return any(name in judged.changes and judged.changes[name].after is not None for name in names)
    return finding.kind.parses and finding.upstream == PARSER


def _is_interpreted(place: str | None, judged: Judged) -> bool:
    """Whether an upstream place is among the interpreted checks."""
    return place == PARSER or (place is not None and place.rpartition(":")[0] in judged.files)


def _tells(finding: Finding, refused: Refused, job: Job) -> bool:
    """Whether a finding of another rule is about the refusing statement."""
    if finding.severity is not Severity.ERROR or finding.kind is Kind.MEMORY:
        return False
    if refused.parses:
        return finding.kind.parses or finding.upstream == PARSER or finding.kind is Kind.ABSENCE
    if finding.upstream is not None and refused.is_at(finding.upstream):
        return True
    return refused.statement != "" and refused.statement in statements_of(finding.rule, job.versions)


def _names(key: Iterable[str | int]) -> Iterable[str]:
    return (str(part).lstrip("-").replace("-", "_") for part in key)
