"""Shared code of the parsing rules. It finds the problems of one kind, and the change that might fix each problem."""

from __future__ import annotations

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Severity
from preflight.loaders.document import Problem, Unknown
from preflight.rules.megatron.option_names import place_of
from preflight.run.arguments import REMOVE

UPSTREAM = "argparse"
CRASHES = {"enum": ("271ec60700", "8109f40526"), "pattern": ("dbcd5f295f", "9aee8912c0")}
"""The statements where reading a value fails without an argparse error, under the names used in the evidence."""


def problems(job: Job, kind: str) -> Iterator[Problem]:
    """The parsing faults of one kind, in the order of the words."""
    return (problem for problem in job.arguments.problems if problem.kind == kind)


def refused_value(job: Job, problem: Problem, severity: Severity | None) -> Finding:
    """A value that the parser refuses: offers another value or, as an alternative, the removal of the option."""
    upstream = place_upstream(job, problem)
    meant = rewritten(job, problem)
    others = () if meant is None else (dropped(job, problem),)  # alone it would only delete what was chosen
    return finding(problem, meant, severity, *others, upstream=upstream)


def place_upstream(job: Job, problem: Problem) -> str:
    """The place where the framework refuses a word."""
    places = (place_of(job, site) for site in CRASHES.get(problem.crash, ()))
    return next((place for place in places if place is not None), UPSTREAM)


def finding(
    problem: Problem,
    fix: Fix | None = None,
    severity: Severity | None = None,
    *others: Fix | None,
    upstream: str = UPSTREAM,
) -> Finding:
    """A finding at the location of the fault. others: additional fixes."""
    fixes = tuple(f for f in (fix, *others) if f is not None)
    first = fixes[0] if fixes else None
    return Finding(
        problem.message,
        problem.span,
        fix=first,
        key=(problem.span.text,),
        upstream=upstream,
        severity=severity,
        alternatives=fixes[1:],
    )


def own_options(job: Job) -> Severity | None:
    """At most a note if the entry script may define additional options and no target is given."""
    guessed = job.arguments.get("entry_is_known").raw is False and job.arguments.get("target_is_stated").raw is False
    return Severity.NOTE if guessed else None


def renamed(job: Job, problem: Problem) -> Fix | None:
    """Write another option instead of the existing one."""
    if problem.fix is None or any(value.key[-1:] == (problem.fix[2],) for value in job.arguments.written.values()):
        return None  # an option that already exists was not meant to be written twice
    document = job.documents[0]
    key = ("MODEL_ARGS", problem.span.text) if document.kind == "yaml" else (problem.span.text,)
    return Fix(problem.fix[0], (Edit("rename", key, problem.fix[2], run=document.run),))


def removed(job: Job, problem: Problem, option: str = "") -> Fix | None:
    """Remove an option that is in this file."""
    document = job.documents[0]
    option = (option or problem.span.text).partition("=")[0]
    key = ("MODEL_ARGS", option) if document.kind == "yaml" else (option,)
    return Fix(f"remove {option}", (Edit("remove", key, run=document.run),)) if option.startswith("--") else None


def dropped(job: Job, problem: Problem) -> Fix | None:
    """Remove the option whose value is refused, so that its default applies, unless it determines what is trained."""
    for name, value in job.arguments.written.items():
        if value.span == problem.span and not job.arguments.keeps(name) and (edits := job.arguments.put(name, REMOVE)):
            return Fix(f"remove {job.arguments.spell(name)}", edits)
    return None


def rewritten(job: Job, problem: Problem) -> Fix | None:
    """Replace a refused value with another one."""
    if problem.fix is None:
        return None
    text = problem.fix[2]
    meant = (
        int(text) if text.isdecimal() and str(int(text)) == text else text
    )  # YAML quotes a string that looks like a number
    for value in job.arguments.written.values():
        if value.span == problem.span and isinstance(value.raw, Unknown) and (edits := value.becomes(meant)):
            return Fix(problem.fix[0], edits)
    return None
