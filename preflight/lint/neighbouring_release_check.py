"""Errors about a release that is not described: they stay errors where the described releases around it report them."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.job import Job
from preflight.lint.severity_downgrades import SecondLook, lowered, offered_only, settled
from preflight.lint.uncertain_facts import around, enclosing, undescribed
from preflight.lint.upstream_evidence import evidence, refused_in
from preflight.loaders.document import Document
from preflight.run.request import Target
from preflight.source.finding import Finding, Kind, Message, Severity

Place = tuple[str, str, int]
OWN = "own-check"
"""The rule that reports what the program's source refuses, whatever its release."""


def with_neighbours(document: Document, found: list[Finding], job: Job, look: SecondLook) -> list[Finding]:
    """The findings; for an undescribed release, an error that one of the neighbouring described releases does not
    report is a warning, and so is one about an option or key that resembles no known one: it may be new. Between two
    releases of a front end that both refuse it, it is an error; a front end that is older or newer than all may have
    other keys, and of the keys that a release adds, up to a third resemble a known one."""
    asked = undescribed(job)
    if asked is None or not _errors(found):
        return found
    described, front_end = tuple(look.described()), evidence(asked.framework) is None
    between = enclosing(asked, described) if front_end else ()
    neighbours = _Neighbours(document, job, between or around(asked, described), look, bool(between))
    return [_judged(finding, job, asked, neighbours) for finding in found]


def _judged(finding: Finding, job: Job, asked: Target, neighbours: _Neighbours) -> Finding:
    if finding.severity is not Severity.ERROR or finding.kind is Kind.MEMORY or finding.rule == OWN:
        return finding
    held = neighbours.reporting(finding)
    doubted = finding.fix is None or evidence(asked.framework) is None
    new = finding.kind is Kind.OPTIONS and not neighbours.between and doubted
    if all(held.values()) and not new:
        return finding
    other = next((there for there in held if held[there] is False), None)
    named = {"target": str(job.target), "other": str(other), "version": asked.version}
    template = "{other} accepts it, and {version} is not a known release"
    if other is None:
        template = "checked as {target}, because {version} is not a known release"
    because = Message(template, **named)
    return offered_only(lowered(finding, because))


class _Neighbours:
    """The described releases around the one of a run. between: whether it is newer than one and older than another; the
    checks of a front end are then compared by reading the file as each."""

    def __init__(self, document: Document, job: Job, near: Sequence[Target], look: SecondLook, between: bool) -> None:
        self._document, self._look, self.between = document, look, between
        certainty = job.arguments.certainty
        self._stacks = {there: certainty.stack(there.version) or {there.framework: there.version} for there in near}
        self._found: dict[Target, frozenset[Place]] = {}

    def reporting(self, finding: Finding) -> dict[Target, bool | None]:
        """Neighbour → whether it reports an error: by the evidence of its check, otherwise by reading the file as that
        release."""
        return {there: self._reports(finding, there) for there in self._stacks}

    def _reports(self, finding: Finding, there: Target) -> bool | None:
        if finding.kind.of_release and (not self.between or evidence(there.framework) is not None):
            return refused_in(finding.rule, finding.rule.partition("/")[0], self._stacks[there])
        return (finding.rule, finding.path, finding.span.start) in self._errors_of(there)

    def _errors_of(self, there: Target) -> frozenset[Place]:
        if there not in self._found:
            look = self._look._replace(request=self._look.request._replace(target=there))
            job = look.read(self._document, look.request)
            found = settled(self._document, look.check(job), job, look) if job is not None else []
            self._found[there] = _errors(found)
        return self._found[there]


def _errors(found: Sequence[Finding]) -> frozenset[Place]:
    return frozenset((f.rule, f.path, f.span.start) for f in found if f.severity is Severity.ERROR)
