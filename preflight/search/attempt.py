"""Tries edits on a job in memory: apply, prove, read and check again."""

from __future__ import annotations

from preflight.engine import Report
from preflight.finding import Edit, Finding, Fix
from preflight.fixer import apply
from preflight.job import Job
from preflight.loaders.yaml_edit import CannotEdit
from preflight.refusal import NotProven
from preflight.search.layouts import Try
from preflight.source import InputError
from preflight.workspace import Workspace


def attempts(workspace: Workspace, report: Report, job: Job) -> Try:
    """A function that applies edits to a job's document and checks the result."""
    sources = {source.name: source for source in workspace.sources}
    index = report.jobs.index(job)

    def attempt(edits: tuple[Edit, ...]) -> tuple[Job, tuple[Finding, ...]] | str:
        if not edits:
            return job, report.findings
        finding = Finding("another layout", job.start, fix=Fix("another layout", edits))
        try:
            edited, _ = apply([finding], report, sources)
            after = workspace.check(edited)
        except (CannotEdit, NotProven, InputError) as error:
            return str(error)
        if len(after.jobs) <= index:
            return "the file would no longer be recognised"
        return after.jobs[index], after.findings

    return attempt
