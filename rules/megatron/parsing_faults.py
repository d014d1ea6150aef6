"""What the rules about faults of parsing share: the problems of one kind, and the change that would mend one."""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Severity
from preflight.document import Problem, Unknown

UPSTREAM = "argparse"


def problems(job: Job, kind: str) -> Iterator[Problem]:
    """The faults of one kind that parsing met, in the order of the words."""
    return (problem for problem in job.arguments.problems if problem.kind == kind)


def finding(problem: Problem, fix: Fix | None = None, severity: Severity | None = None) -> Finding:
    """A finding at the place of the fault."""
    return Finding(problem.message, problem.span, fix=fix, key=(problem.span.text,), upstream=UPSTREAM, severity=severity)


def own_options(job: Job) -> Severity | None:
    """A note at most where the entry script may have options of its own and nobody said the target."""
    guessed = job.arguments.get("entry_is_known").raw is False and job.arguments.get("target_is_stated").raw is False
    return Severity.NOTE if guessed else None


def renamed(job: Job, problem: Problem) -> Fix | None:
    """Write another option in place of the one that stands there."""
    if problem.fix is None:
        return None
    document = job.documents[0]
    key = ("MODEL_ARGS", problem.span.text) if document.kind == "yaml" else (problem.span.text,)
    return Fix(problem.fix[0], (Edit("rename", key, problem.fix[2], run=document.run),))


def rewritten(job: Job, problem: Problem) -> Fix | None:
    """Write another value where the refused one stands."""
    if problem.fix is None:
        return None
    for value in job.arguments.written.values():
        if value.span == problem.span and isinstance(value.raw, Unknown) and (edits := value.becomes(problem.fix[2])):
            return Fix(problem.fix[0], edits)
    return None
