"""Which errors of a run are less certain than their rules: those become warnings that give the reason."""

from __future__ import annotations

from collections.abc import Callable

from preflight.job import Job
from preflight.lint import certainty
from preflight.lint.altered_checkout import (
    lower_what_a_checkout_lacks,
    lower_what_another_program_sets,
    lower_what_older_programs_take,
)
from preflight.lint.assumed_arguments import lower_what_options_may_cure, with_open_options
from preflight.lint.refusing_releases import lower_what_a_neighbour_takes, lower_what_some_releases_take
from preflight.lint.severity import one_finding_of_a_fork
from preflight.loaders.document import Document, Launch
from preflight.run.request import Request, Target
from preflight.source.finding import Finding, Kind, Severity
from preflight.source.record import NamedTuple, replace


class SecondLook(NamedTuple):
    """How a document was read and checked, to do so again as if something were otherwise.

    described: the releases that dialects describe. read: gives None for a document that is nobody's.
    """

    request: Request
    described: tuple[Target, ...]
    read: Callable[[Document, Request], Job | None]
    check: Callable[[Job], list[Finding]]


def lower_what_is_uncertain(document: Document, found: list[Finding], job: Job, look: SecondLook) -> list[Finding]:
    """What was found, with a warning for each error that another number of nodes or another release may not have."""
    found = _lower_what_other_nodes_cure(document, found, look)  # first: it compares with what is not lowered yet
    if document.launch is not None and document.launch.lost:
        found = _lower_where_the_rest_runs(document, document.launch, found, look)
    if job.arguments.assumed:
        found = _lower_what_is_assumed(document, found, job, look)
    found = lower_what_older_programs_take(lower_what_a_checkout_lacks(found, job), job)
    found = lower_what_another_program_sets(found, job)
    found = certainty.split(lower_what_some_releases_take(found, job), job)
    found = one_finding_of_a_fork(found, job)
    near = certainty.around(job.asked, look.described)
    return lower_what_a_neighbour_takes(found, job, near) if near else found


def _lower_where_the_rest_runs(
    document: Document, launch: Launch, found: list[Finding], look: SecondLook
) -> list[Finding]:
    """A launch that bash hands only some of its words to is checked with those, too: where it runs,
    the loss is a warning."""
    reached = len(launch.words) - launch.lost
    left = replace(document, launch=launch._replace(words=launch.words[: max(reached, 0)], lost=0))
    there = look.read(left, look.request) if reached >= 0 else None
    said = {(f.rule, f.path, f.span.start) for f in found}
    errors = [f for f in look.check(there) if f.severity is Severity.ERROR] if there is not None else []
    if there is None or any((f.rule, f.path, f.span.start) not in said for f in errors):
        return found
    lowered = (f.kind is Kind.CUT and f.severity is Severity.ERROR for f in found)
    return [replace(f, severity=Severity.WARNING) if low else f for f, low in zip(found, lowered, strict=True)]


def _lower_what_is_assumed(document: Document, found: list[Finding], job: Job, look: SecondLook) -> list[Finding]:
    """A launch to which options may be added is checked as if they were, too, where it has errors."""
    errors = any(finding.severity is Severity.ERROR for finding in found)
    there = look.read(with_open_options(document), look.request) if errors and document.launch is not None else None
    return lower_what_options_may_cure(found, look.check(there), job.arguments.assumed[0].because) if there else found


def _lower_what_other_nodes_cure(document: Document, found: list[Finding], look: SecondLook) -> list[Finding]:
    """A script that has only a default for its number of nodes may be started with another."""
    variable = certainty.assumed(document, look.request)
    if not variable or document.launch is None:
        return found
    others = (look.read(other, look.request) for other in certainty.elsewhere(document, document.launch))
    return certainty.supposed(found, (look.check(other) for other in others if other is not None), variable)
