"""The run of a log: the config line that causes the failure, and the findings of `check` about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from preflight.checking.engine import Report
from preflight.job import Job
from preflight.lint.upstream_evidence import evidence
from preflight.logs.cause_types import Cause
from preflight.logs.diagnosis import Diagnosis
from preflight.logs.framework_messages import statements_on_line
from preflight.memory.advice import SHOWN, Saving, savings
from preflight.source.finding import Finding, Severity
from preflight.source.record import NamedTuple


class Behind(NamedTuple):
    """The relation of a config to a death. `told`: the findings that report its cause; errors: other findings of
    `check`, including warnings if the cause is uncertain; job: the run, if one was read; shrinks: changes that reduce
    memory, if memory is the cause."""

    told: tuple[Finding, ...]
    errors: tuple[Finding, ...]
    job: Job | None
    shrinks: tuple[Saving, ...]
    report: Report

    @property
    def foreseen(self) -> bool:
        """Whether `check` reports the cause as an error from the config alone."""
        return any(finding.severity is Severity.ERROR for finding in self.told)


UNSURE = (Cause.UPSTREAM, Cause.NUMERICS, Cause.UNKNOWN)
"""Causes that a warning may explain, such as one about a known defect of the release."""
OPTION = re.compile(r"--[A-Za-z][\w-]*")
MEMORY_RULES = ("predicted-oom",)


def behind(diagnosis: Diagnosis, report: Report) -> Behind:
    """The relation of the report on a config to a death."""
    told = tuple(finding for finding in report.findings if _tells(finding, diagnosis))
    if not told and diagnosis.cause is Cause.CONFIG and diagnosis.root is not None:
        told = tuple(_named_in(diagnosis.root.first.message, report.findings))
    told_of = (Severity.ERROR, Severity.WARNING) if diagnosis.cause in UNSURE else (Severity.ERROR,)
    others = tuple(one for one in report.findings if one.severity in told_of and one not in told)
    job = report.jobs[0] if report.jobs else None
    shrinks: Sequence[Saving] = ()
    if job is not None and diagnosis.cause is Cause.MEMORY and job.memory.worst is not None:
        shrinks = savings(job.plan, job.cluster)[:SHOWN]
    return Behind(told, others, job, tuple(shrinks), report)


def _tells(finding: Finding, diagnosis: Diagnosis) -> bool:
    """Whether a finding reports the root failure: through its rule, or through the same upstream statement."""
    if finding.severity is Severity.NOTE:
        return False
    if diagnosis.cause is Cause.MEMORY:
        return finding.rule in MEMORY_RULES
    statement = diagnosis.statement
    if statement is None:
        return False
    if finding.rule in statement.rules:
        return True
    path, _, line = (finding.upstream or "").rpartition(":")
    return bool(path) and any(site in statement.sites for site in _sites_at(statement.framework, path, line))


def _sites_at(framework: str, path: str, line: str) -> Iterator[str]:
    """The statements at a line of a file in any release."""
    known = evidence(framework)
    if known is not None and line.isdigit():
        yield from statements_on_line(framework, path, int(line))


def _named_in(message: str, findings: Sequence[Finding]) -> Iterator[Finding]:
    """The errors at an option named in the message of a parser."""
    said = set(OPTION.findall(message))
    for finding in findings:
        if finding.severity is Severity.ERROR and said.intersection([*map(str, finding.key), *_options(finding)]):
            yield finding


def _options(finding: Finding) -> list[str]:
    """The options of a finding: those at its beginning, or set by its fix."""
    at = OPTION.match(finding.message)
    edits = finding.fix.edits if finding.fix is not None else ()
    return [*([at[0]] if at else []), *(str(edit.key[0]) for edit in edits if edit.key)]
