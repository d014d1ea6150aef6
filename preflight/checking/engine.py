"""Runs rules over documents, honours suppressions, sorts: documents → Report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from preflight.checking.beside import NOTHING, Beside
from preflight.checking.most_findings import bounded, some_of
from preflight.checking.not_judged import Crash as Crash
from preflight.checking.not_judged import Unchecked as Unchecked
from preflight.checking.not_judged import Unreadable as Unreadable
from preflight.dialects import Surroundings, claim
from preflight.dialects.communication import completed
from preflight.job import Job
from preflight.lint.certainty import missed
from preflight.lint.rule import Checkable
from preflight.lint.suppression import UNUSED as UNUSED
from preflight.lint.suppression import suppressions, unsuppressed
from preflight.loaders.document import REFUSED, Document
from preflight.plugins.manager import Plugins
from preflight.run.device_names import find_device, likely_device
from preflight.run.plan import Plan
from preflight.run.request import Request
from preflight.source.finding import Finding, Kind, Severity
from preflight.source.record import NamedTuple, dataclass, replace

TOO_DEEP = "a value is nested too deeply to be read"

Said = tuple[str, str, int, str]
"""What names a finding: its rule, where it stands, what it says."""

OWN = "own-check"
"""The rule that tells what the program's own source refuses."""


class Policy(NamedTuple):
    """What is asked of rules. chosen: whether one runs on a path; options: per rule; kept: never folded into others.

    reported: whether a finding of a rule that ran is reported; None where all are. errors_only: only those rules run
    whose findings can be errors.
    """

    chosen: Callable[[str, str], bool] = lambda rule, path: True
    options: Mapping[str, Mapping[str, Any]] = {}
    kept: frozenset[str] = frozenset()
    reported: Callable[[Finding], bool] | None = None
    errors_only: bool = False

    def wants(self, finding: Finding) -> bool:
        """Whether a finding is of a chosen rule, and reported."""
        chosen = self.chosen(finding.rule, finding.path)
        return chosen and (self.reported is None or self.reported(finding))


@dataclass(frozen=True)
class Report:
    """What was found. skipped: files that no dialect claims. unknown: what could not be verified. errors: files that
    cannot be read.

    looked: other files that were opened, or looked for in vain: what is in them is part of the report.
    """

    findings: tuple[Finding, ...] = ()
    jobs: tuple[Job, ...] = ()
    unknown: tuple[Unchecked, ...] = ()
    crashes: tuple[Crash, ...] = ()
    skipped: tuple[str, ...] = ()
    suppressed: int = 0
    checked: tuple[str, ...] = ()
    errors: tuple[Unreadable, ...] = ()
    looked: tuple[str, ...] = ()
    rules: tuple[Checkable, ...] = ()
    """The rules that made the findings, sorted by id."""

    reads: tuple[str, ...] = ()
    """Of what the caller sets, the names that something reads."""

    @property
    def plan(self) -> Plan | None:
        """The plan of the first run, None when nothing was read."""
        return self.jobs[0].plan if self.jobs else None

    @property
    def accepted(self) -> bool:
        """All is read, and no error but a predicted out-of-memory, which `fits` tells."""
        unjudged = any(not crash.rule for crash in self.crashes)
        return not self.errors and not unjudged and not any(map(_refuses, self.findings))

    @property
    def undecided(self) -> bool:
        """Whether the source of a run's program could not decide about it; `unknown` says what would."""
        return any(job.judged is not None and job.judged.undecided for job in self.jobs)

    @property
    def fits(self) -> bool:
        """All is read and accepted, and no run is predicted not to fit in memory."""
        out = any(f.severity is Severity.ERROR and f.kind is Kind.MEMORY for f in self.findings)
        return self.accepted and not out and not any(j.cluster.budget and j.memory.replaced for j in self.jobs)


def _refuses(finding: Finding) -> bool:
    """Whether a run cannot start because of a finding; one that may not fit can."""
    return finding.severity is Severity.ERROR and finding.kind is not Kind.MEMORY


def read_job(document: Document, plugins: Plugins, request: Request, beside: Beside) -> Job | None:
    """Translate a document, or None when no dialect claims it. Raises InputError."""
    dialect = claim(document, plugins.dialects, request)
    if dialect is None:
        return None
    surroundings = Surroundings(
        request,
        beside.read,
        lambda name: find_device(plugins.devices, name),
        lambda name: likely_device(plugins.devices, name),
        *beside[1:],
    )
    reading = dialect.read(document, surroundings)
    if any(problem.kind in REFUSED for problem in document.problems):
        plan = replace(reading.plan, unmodelled=(*reading.plan.unmodelled, "a script that bash refuses"))
        reading = reading._replace(plan=plan)
    made = reading._replace(cluster=completed(reading.cluster, document, request))
    job = Job(*made, missed(request.target, reading.target))
    if not job.arguments.certainty.sourced:
        return job
    from preflight.checking.judgement import with_source

    return with_source(job, document, request, beside)


def check_job(job: Job, plugins: Plugins, policy: Policy) -> tuple[list[Finding], list[Unchecked], list[Crash]]:
    """Every rule over one job; each in its own try."""
    path = job.documents[0].source.name
    findings: list[Finding] = []
    unknown: list[Unchecked] = []
    crashes: list[Crash] = []
    asked: dict[str, Checkable] = {}
    for rule in plugins.selection(job.versions).of(job):
        if not policy.chosen(rule.id, path) or (policy.errors_only and rule.severity is not Severity.ERROR):
            continue
        try:
            if rule.silent(job):
                continue
            said = some_of(rule.check(job, policy.options.get(rule.id, {})), job.documents[0].start)
        except RecursionError:
            unknown.append(Unchecked(rule.id, path, because=TOO_DEEP))
            continue
        except Exception as error:
            import traceback

            crashes.append(Crash(rule.id, path, f"{type(error).__name__}: {error}", traceback.format_exc()))
            continue
        if not said:
            continue
        asked[rule.id] = rule
        for item in said:
            if isinstance(item, Finding):
                findings.append(item.of(rule.id, rule.severity, job.flow(item.span), rule.kind))
            elif item.because:
                unknown.append(Unchecked(rule.id, path, item.because))
    if not findings:
        return findings, unknown, crashes
    if job.judge is not None:
        from preflight.lint.severity import decided_by_source

        findings = decided_by_source(findings, job, OWN)
    from preflight.checking.consequences import fold
    from preflight.checking.fix_policy import ranked

    return ranked(fold(findings, job, asked, policy.kept), job), unknown, crashes


def check_documents(
    documents: Iterable[Document],
    plugins: Plugins,
    request: Request,
    policy: Policy = Policy(),
    beside: Beside = NOTHING,
) -> Report:
    """Check documents that were loaded. Raises InputError where a claimed file cannot be read as its framework reads
    it."""
    findings, unknown, crashes = list[Finding](), list[Unchecked](), list[Crash]()
    jobs: list[Job] = []
    said: list[set[Said]] = []
    skipped: list[str] = []
    for document in documents:
        if (job := read_job(document, plugins, request, beside)) is None:
            skipped.append(document.source.name)
            continue
        jobs.append(job)
        found, unverified, failed = check_job(job, plugins, policy)
        if job.arguments.certainty.doubtful or any(finding.severity is Severity.ERROR for finding in found):
            found = _less_certain(document, found, job, plugins, request, policy, beside)
        findings += found
        said.append({_said(finding) for finding in found if _refuses(finding)})
        unknown += unverified
        crashes += failed
    findings = distinct(findings)
    kept = _unsuppressed(findings, jobs, unknown, plugins, policy)
    shown = [finding for finding in kept if policy.reported is None or policy.reported(finding)]
    checked = tuple(dict.fromkeys(d.source.name for job in jobs for d in job.documents[:1]))
    return Report(
        findings=tuple(bounded(sorted(shown, key=order))),
        jobs=_with_refusals(jobs, said, kept),
        unknown=tuple(dict.fromkeys(unknown)),
        crashes=tuple(crashes),
        skipped=tuple(name for name in dict.fromkeys(skipped) if name not in checked),
        suppressed=len(findings) - sum(f.rule != UNUSED for f in kept),
        checked=checked,
        rules=_fired(shown, jobs, plugins),
    )


def _said(finding: Finding) -> Said:
    return finding.rule, finding.path, finding.span.start, finding.message


def _with_refusals(jobs: Sequence[Job], said: Sequence[set[Said]], kept: Sequence[Finding]) -> tuple[Job, ...]:
    """The runs, with the rules that refuse them: those whose errors about them no comment suppresses."""
    left = {_said(finding) for finding in kept if _refuses(finding)}
    rules = (tuple(sorted({rule for rule, *_ in errors & left})) for errors in said)
    return tuple(job.refused_by(by) if by else job for job, by in zip(jobs, rules, strict=True))


def _less_certain(
    document: Document,
    found: list[Finding],
    job: Job,
    plugins: Plugins,
    request: Request,
    policy: Policy,
    beside: Beside,
) -> list[Finding]:
    """What was found, with warnings in place of errors that are not certain."""
    from preflight.checking.doubts import SecondLook, lower_what_is_uncertain  # only runs with errors need it

    look = SecondLook(
        request,
        tuple(target for dialect in plugins.dialects for target in dialect.targets),
        lambda document, asked: read_job(document, plugins, asked, beside),
        lambda job: check_job(job, plugins, policy)[0],
    )
    return lower_what_is_uncertain(document, found, job, look)


def _unsuppressed(
    findings: Sequence[Finding], jobs: Sequence[Job], unknown: Sequence[Unchecked], plugins: Plugins, policy: Policy
) -> list[Finding]:
    """The findings that no comment of the jobs' documents covers, and those about comments."""
    commented = {id(d.comments): d for job in jobs for d in job.documents if d.comments}  # runs of a script share them
    found = (suppression for document in commented.values() for suppression in suppressions(document))
    comments = {(comment.span.path, comment.span.start): comment for comment in found}
    unsure = {(u.rule, u.path) for u in unknown}
    return unsuppressed(findings, tuple(comments.values()), policy.chosen, unsure, lambda: _every_id(plugins))


def _every_id(plugins: Plugins) -> set[str]:
    return {rule.id for rule in plugins.rules(None)}


def _fired(findings: Iterable[Finding], jobs: Iterable[Job], plugins: Plugins) -> tuple[Checkable, ...]:
    ids = {finding.rule for finding in findings}
    if not ids:
        return ()
    found = {rule.id: rule for job in jobs for rule in plugins.rules(job.versions) if rule.id in ids}
    return tuple(found[id] for id in sorted(found))


def order(finding: Finding) -> tuple[object, ...]:
    """Findings sort by place, then severity, then rule."""
    assert finding.severity is not None
    return (finding.path, finding.span.start, -finding.severity.rank, finding.rule, finding.message)


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """One finding where several runs say the same about the same place."""
    return list({(f.rule, f.path, f.span.start, f.message): f for f in findings}.values())
