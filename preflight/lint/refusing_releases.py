"""Errors of a run whose release is only known to be one of several, or to lie between two: what some of these take is a
warning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.job import Job
from preflight.lint.certainty import lowered, noted, strange
from preflight.lint.evidence import evidence, refused_in
from preflight.run.request import Target
from preflight.source.finding import Finding, Fix, Kind, Safety, Severity
from preflight.source.message import Message
from preflight.source.record import replace


def lower_what_some_releases_take(found: list[Finding], job: Job) -> list[Finding]:
    """The findings, with a warning for each error that not all releases which the run may be of have.

    An option that no release has shows a fork: then the run may be of any of them, and its options may differ.
    """
    known, certainty = evidence(job.target.framework), job.arguments.certainty
    if known is None or certainty.stated or certainty.has is not None:
        return found
    option = strange(job)
    if not option and not certainty.releases:
        return found
    possible = known.checked if option else certainty.releases
    described = [release for release in possible if _described(release, known.framework)]
    stacks = {release: certainty.stack(release) or {known.framework: release} for release in described or possible}
    fork = Message(
        "checked as {target}, which has no {option}: the release may be another", target=str(job.target), option=option
    )

    slips = {problem.span.start for problem in job.arguments.problems if problem.fix is not None}

    def judged(finding: Finding) -> Finding:
        if finding.severity is Severity.NOTE:
            return finding
        if option and finding.kind in (Kind.OPTIONS, Kind.ABSENCE):
            if finding.severity is not Severity.ERROR:
                return finding
            own = finding.kind is Kind.OPTIONS and finding.span.start not in slips  # it may be the fork's own
            return noted(finding, fork) if own else lowered(finding, fork)
        because = _not_all(finding, stacks)
        return finding if because is None else without_safe_fixes(lowered(finding, because))

    return [judged(finding) for finding in found]


def lower_what_a_neighbour_takes(found: list[Finding], job: Job, near: Sequence[Target]) -> list[Finding]:
    """The findings about a release that is not described, with a warning for each error of options or of a release's
    checks that the evidence does not have in all the described releases beside it."""
    certainty, asked = job.arguments.certainty, job.asked.version if job.asked is not None else ""
    stacks = {there: certainty.stack(there.version) or {there.framework: there.version} for there in near}

    def judged(finding: Finding) -> Finding:
        if finding.severity is not Severity.ERROR or not (finding.kind.parses or finding.kind.of_release):
            return finding
        framework = finding.rule.partition("/")[0]
        held = {there: refused_in(finding.rule, framework, stack) for there, stack in stacks.items()}
        if all(held.values()):
            return finding
        other = next((there for there in near if held[there] is False), None)
        because = (
            Message("checked as {target}, because {version} is not supported", target=str(job.target), version=asked)
            if other is None
            else Message("{other} does not refuse it, and {version} is not described", other=str(other), version=asked)
        )
        return without_safe_fixes(lowered(finding, because))

    return [judged(finding) for finding in found]


def _described(release: str, framework: str) -> bool:
    """Whether the checks of a release are described; of another framework's it is named as `name@release`."""
    name, _, version = release.rpartition("@")
    known = evidence(name or framework)
    return known is not None and known.described(version)


def without_safe_fixes(finding: Finding) -> Finding:
    """The finding with fixes that are only applied when they are asked for:
    in another release they may change what is trained."""
    alternatives = tuple(map(_unsafe, finding.alternatives))
    return replace(finding, fix=_unsafe(finding.fix) if finding.fix is not None else None, alternatives=alternatives)


def _unsafe(fix: Fix) -> Fix:
    return fix._replace(safety=Safety.UNSAFE) if fix.safety is Safety.SAFE else fix


def _not_all(finding: Finding, stacks: Mapping[str, Mapping[str, str]]) -> Message | None:
    """Which of the releases say what a finding says, where not all do; None where all do, or nothing is known.

    stacks: release → which versions of which frameworks take part in its runs.
    """
    releases, framework = list(stacks), finding.rule.partition("/")[0]
    held = {release: refused_in(finding.rule, framework, stack) for release, stack in stacks.items()}
    alike = [release for release in releases if held[release] or held[release] is None]
    if len(alike) == len(releases) or not any(held.values()):
        return None
    first, last = alike[0], alike[-1]
    if last == releases[-1]:
        return Message("holds from {first} on; the options also fit {oldest}", first=first, oldest=releases[0])
    template = "holds from {first} to {last}; the options also fit {newest}"
    return Message(template, first=first, last=last, newest=releases[-1])
