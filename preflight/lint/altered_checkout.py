"""Errors of a run in a checkout that is not as its framework was published:
what its own code does not refuse is no error."""

from __future__ import annotations

from preflight.job import Job
from preflight.lint.certainty import lowered, noted
from preflight.lint.refusing_releases import without_safe_fixes
from preflight.source.finding import Finding, Kind, Severity
from preflight.source.message import Message
from preflight.source.record import replace


def lower_what_a_checkout_lacks(found: list[Finding], job: Job) -> list[Finding]:
    """The findings, with a note for each error whose check is not in the checkout, a warning where that is not known,
    and no fix that is safe.

    What is about no value that somebody wrote is left out there: the checkout may have other defaults.
    """
    certainty = job.arguments.certainty
    has = certainty.has
    if certainty.lacks:
        found = [finding for finding in found if finding.rule not in certainty.lacks]
    if has is None:
        return found
    template = "{target} checks this, the code in this checkout does not ({evidence})"
    because = Message(template, target=str(job.target), evidence=certainty.evidence)
    if certainty.lying:
        template = "{target} checks this; {lying} lies in this checkout ({evidence})"
        because = Message(template, target=str(job.target), lying=certainty.lying, evidence=certainty.evidence)

    if certainty.patched:
        template = "{target} checks this; the code in this checkout patches it ({evidence})"
        because = Message(template, target=str(job.target), evidence=certainty.evidence)

    def judged(finding: Finding) -> Finding | None:
        if finding.severity is Severity.NOTE or finding.kind is Kind.MEMORY:
            return finding
        own = without_safe_fixes(finding)
        of_release = finding.kind.of_release or (certainty.lying != "" and finding.kind is Kind.GENERAL)
        if finding.severity is Severity.ERROR and of_release and has(finding.rule) is False:
            files = (finding.rule, (finding.upstream or "").partition(":")[0])
            lower = lowered if certainty.patched or any(map(certainty.lies_here, files)) else noted
            return lower(own, because) if finding.key or finding.kind is Kind.ABSENCE else None
        return own

    return [one for finding in found if (one := judged(finding)) is not None]


def lower_what_older_programs_take(found: list[Finding], job: Job) -> list[Finding]:
    """The findings, with a warning for each error that older releases of a program do not have, where nobody says the
    release."""
    certainty = job.arguments.certainty
    if certainty.stated or not certainty.since:
        return found

    def judged(finding: Finding) -> Finding:
        first = certainty.since.get(finding.rule)
        if first is None or finding.severity is not Severity.ERROR:
            return finding
        template = "{framework} before {first} accepts it; --target states the release"
        return without_safe_fixes(lowered(finding, Message(template, framework=job.target.framework, first=first)))

    return [judged(finding) for finding in found]


def lower_what_another_program_sets(found: list[Finding], job: Job) -> list[Finding]:
    """The findings, with warnings in place of errors where a program reads the file and may set other values first.

    Of a program that takes some sections only as the framework does, the findings in these.
    """
    certainty = job.arguments.certainty
    program, parts, apart = certainty.completed, certainty.parts, certainty.apart
    if not program:
        return without_checks_apart(found, apart) if apart else found
    if parts:
        own = [finding for finding in found if _section(finding, job) in parts]
        return [finding for finding in own if not (finding.upstream or "").startswith(apart)]
    because = Message("{program} reads this file and may set other values first", program=program)
    return [_only_offered(lowered(f, because) if f.severity is Severity.ERROR else f) for f in found]


def without_checks_apart(found: list[Finding], apart: tuple[str, ...]) -> list[Finding]:
    """The findings but those of a framework's checks in code that the run leaves out; what is true of every framework
    stays, without the line there."""
    told = [(finding, (finding.upstream or "").startswith(apart)) for finding in found]
    return [replace(f, upstream=None) if left else f for f, left in told if not left or not f.kind.of_release]


def _only_offered(finding: Finding) -> Finding:
    """The finding with fixes to choose from: the program may set the very value that is missing."""
    fix = finding.fix._replace(offered=True) if finding.fix is not None else None
    return replace(finding, fix=fix, alternatives=tuple(way._replace(offered=True) for way in finding.alternatives))


def _section(finding: Finding, job: Job) -> str:
    """The section of a config that a finding points into, "" for none."""
    document = next((one for one in job.documents if one.source.name == finding.path), None)
    entries = document.tree.entries if document is not None and document.tree is not None else ()
    before = [entry for entry in entries if entry.key.span.start <= finding.span.start]
    whole = document is None or finding.span.start <= document.start.start  # it is about the whole file
    return str(before[-1].key.value) if before and not whole else ""
