"""Tries edits on a job: in memory, then in its text; changes that reduce a run's memory are tried in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Policy, Report
from preflight.fix.edited_texts import apply
from preflight.fix.fix_proof import made
from preflight.job import Job
from preflight.loaders import load
from preflight.loaders.command_edit import occurrences
from preflight.loaders.document import Document, Word
from preflight.memory.advice import LEAST, SHOWN, Saving, savings
from preflight.source.finding import Edit, Finding, Fix, Kind, NotProven, Severity
from preflight.source.record import replace
from preflight.source.source_file import CannotEdit, InputError, Source


def retyped(document: Document, edits: Sequence[Edit]) -> Document | None:
    """The document with options set and removed; None if it is not a launch, or the edits are of another kind."""
    launch = document.launch
    if launch is None or any(
        edit.action not in ("set", "remove") or len(edit.key) != 1 or edit.run != document.run for edit in edits
    ):
        return None
    words, environment = launch.words, dict(launch.environment)
    for edit in edits:
        name = str(edit.key[0])
        if name.startswith("--"):
            words = _with(words, name, edit, launch.entry)
        elif edit.action == "set":
            environment[name] = _word(str(edit.value), environment.get(name) or launch.entry)
        else:
            return None
    return replace(document, launch=launch._replace(words=words, environment=environment))


def _with(words: tuple[Word, ...], name: str, edit: Edit, entry: Word) -> tuple[Word, ...]:
    """The words without the option or, if it is set, with its new value in the old place or at the end."""
    groups = occurrences(words, name)
    gone = {id(word) for group in groups for word in group}
    near = groups[-1][-1] if groups else entry
    new: tuple[Word, ...] = ()
    if edit.action == "set":
        values = (
            []
            if edit.value is None or edit.value is True
            else edit.value
            if isinstance(edit.value, (list, tuple))
            else [edit.value]
        )
        new = (_word(name, near), *(_word(str(value), near) for value in values))
    if not groups:
        return (*words, *new)
    last = next(at for at, word in enumerate(words) if word is groups[-1][0])
    kept = [word for word in words[:last] if id(word) not in gone]
    return (*kept, *new, *(word for word in words[last:] if id(word) not in gone))


def _word(text: str, near: Word) -> Word:
    return Word(text, near.span, near.uses)


Tried = tuple[Job, tuple[Finding, ...]] | str
"""The new job and its findings, or the reason why the edits cannot be made."""


class Attempts:
    """Edits of one job of a report."""

    def __init__(self, workspace: Workspace, report: Report, job: Job) -> None:
        self.workspace, self.report, self.job = workspace, report, job
        self.sources = {source.name: source for source in workspace.sources}

    def __call__(self, edits: tuple[Edit, ...]) -> Tried:
        """The job after edits and its errors; it is not proven that the text can be edited accordingly."""
        if not edits:
            return self.job, self.report.findings
        document, edited = retyped(self.job.documents[0], edits), dict[str, Source]()
        try:
            if document is None:
                edited = apply([self._wish(edits)], self.report, self.sources, proven=False).sources
                document = self._loaded(edited)
            if document is None:
                return "the file would no longer be recognized"
            after = self._strict.judge([document], edited)
        except (CannotEdit, NotProven, InputError) as error:
            return str(error)
        return (after.jobs[0], after.findings) if after.jobs else "the file would no longer be recognized"

    def proven(self, edits: tuple[Edit, ...]) -> Tried:
        """The job after proven edits of its text; its errors, and new errors in other runs."""
        index = self.report.jobs.index(self.job)
        if not edits:
            return self.job, self.report.findings
        found = made(self.workspace, self.report, [self._wish(edits)])
        if isinstance(found, str):
            return found
        edited, _, after = found
        if len(after.jobs) != len(self.report.jobs):
            return "the file would no longer be recognized"
        if len(after.jobs) == 1:
            return after.jobs[0], after.findings
        try:
            own = self._strict.judge([after.jobs[index].documents[0]], edited)
        except InputError as error:
            return str(error)
        was = {(finding.rule, finding.message) for finding in self.report.findings}
        return after.jobs[index], (
            *own.findings,
            *(finding for finding in after.findings if (finding.rule, finding.message) not in was),
        )

    def _wish(self, edits: tuple[Edit, ...]) -> Finding:
        return Finding("another layout", self.job.start, fix=Fix("another layout", edits))

    def _loaded(self, edited: dict[str, Source]) -> Document | None:
        first = self.job.documents[0]
        return next((d for d in load(edited.get(first.source.name, first.source)) if d.run == first.run), None)

    @cached_property
    def _strict(self) -> Workspace:
        """The same workspace, running only the rules whose findings can be errors."""
        w = self.workspace
        policy = Policy(w.policy.chosen, w.policy.options, errors_only=True)
        return Workspace(w.sources, w.plugins, w.request, policy)


def proven_savings(workspace: Workspace, job: Job) -> list[Saving]:
    """The changes that save the most memory, can be written, and are accepted by all rules, the largest saving first.
    workspace: the text of the run, in which they are tried.
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
    """All errors except those about memory, whose numbers change."""
    errors = (f for f in findings if f.severity is Severity.ERROR and f.kind is not Kind.MEMORY)
    return {(finding.rule, finding.message) for finding in errors}
