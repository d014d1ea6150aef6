"""Tries edits on a job: at first in memory, by the rules that can refuse it;
proven on the text where the layout is to be offered."""

from __future__ import annotations

from functools import cached_property

from preflight.checking.engine import Policy, Report
from preflight.checking.workspace import Workspace
from preflight.fix.apply import apply
from preflight.fix.proof import made
from preflight.fix.retype import retyped
from preflight.job import Job
from preflight.loaders import load
from preflight.loaders.document import Document
from preflight.loaders.yaml_edit import CannotEdit
from preflight.source.finding import Edit, Finding, Fix
from preflight.source.refusal import NotProven
from preflight.source.text import InputError, Source

Tried = tuple[Job, tuple[Finding, ...]] | str
"""The new job and its findings, or why the edits cannot be made."""


class Attempts:
    """Edits of one job of a report."""

    def __init__(self, workspace: Workspace, report: Report, job: Job) -> None:
        self.workspace, self.report, self.job = workspace, report, job
        self.sources = {source.name: source for source in workspace.sources}

    def __call__(self, edits: tuple[Edit, ...]) -> Tried:
        """The job with edits made and its errors; whether the text can be changed so is not proven."""
        if not edits:
            return self.job, self.report.findings
        document, edited = retyped(self.job.documents[0], edits), dict[str, Source]()
        try:
            if document is None:
                edited, _ = apply([self._wish(edits)], self.report, self.sources, proven=False)
                document = self._loaded(edited)
            if document is None:
                return "the file would no longer be recognised"
            after = self._strict.judge([document], edited)
        except (CannotEdit, NotProven, InputError) as error:
            return str(error)
        return (after.jobs[0], after.findings) if after.jobs else "the file would no longer be recognised"

    def proven(self, edits: tuple[Edit, ...]) -> Tried:
        """The job with edits made in its text and proven; its errors, and those that are new in other runs."""
        index = self.report.jobs.index(self.job)
        if not edits:
            return self.job, self.report.findings
        found = made(self.workspace, self.report, [self._wish(edits)])
        if isinstance(found, str):
            return found
        edited, _, after = found
        if len(after.jobs) != len(self.report.jobs):
            return "the file would no longer be recognised"
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
        """The same workspace, where only the rules run whose findings can be errors."""
        w = self.workspace
        policy = Policy(w.policy.chosen, w.policy.options, errors_only=True)
        return Workspace(w.sources, w.plugins, w.request, policy)
