"""Runs rules over documents, honours suppressions, sorts: documents → Report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from preflight.between import alone, around, assumed, beneath, doubted, elsewhere, foreign, missed, older, split, strange, supposed
from preflight.device_names import find_device, likely_device
from preflight.dialects import Surroundings, claim
from preflight.dialects.communication import completed
from preflight.document import Document
from preflight.finding import Finding, Severity, Unverified
from preflight.job import Job
from preflight.plan import Plan
from preflight.plugins import Plugins
from preflight.record import NamedTuple, dataclass
from preflight.request import Request, Target
from preflight.rule import Checkable
from preflight.suppression import UNUSED as UNUSED
from preflight.suppression import Suppression, suppressions, unsuppressed

Read = Callable[[Document, str], Document | None]
OUT_OF_MEMORY = "predicted-oom"


class Policy(NamedTuple):
    """What the settings say about rules. chosen: whether a rule runs on a path; options: per rule."""

    chosen: Callable[[str, str], bool] = lambda rule, path: True
    options: Mapping[str, Mapping[str, Any]] = {}


class Crash(NamedTuple):
    """A rule that failed; never hidden, never a finding."""

    rule: str
    path: str
    error: str
    trace: str


class Unchecked(NamedTuple):
    """Something a rule could not verify on a file."""

    rule: str
    path: str
    because: str


class Unreadable(NamedTuple):
    """A file that could not be read as what it is; line and column are 0 when no place is known."""

    path: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return ":".join([*(str(part) for part in self[:3] if part), f" {self.message}"])


@dataclass(frozen=True)
class Report:
    """What was found. skipped: files that no dialect claims. unknown: what could not be verified. errors: files that cannot be read.

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

    @property
    def plan(self) -> Plan | None:
        """The plan of the first run, None when nothing was read."""
        return self.jobs[0].plan if self.jobs else None

    @property
    def accepted(self) -> bool:
        """No error except a predicted out-of-memory, which `fits` tells."""
        return not any(f.severity is Severity.ERROR and f.rule != OUT_OF_MEMORY for f in self.findings)

    @property
    def fits(self) -> bool:
        """No run is predicted not to fit in memory."""
        return not any(f.severity is Severity.ERROR and f.rule == OUT_OF_MEMORY for f in self.findings)


def read_job(document: Document, plugins: Plugins, request: Request, read: Read) -> Job | None:
    """Translate a document, or None when no dialect claims it. Raises InputError."""
    dialect = claim(document, plugins.dialects, request)
    if dialect is None:
        return None
    surroundings = Surroundings(request, read, lambda name: find_device(plugins.devices, name), lambda name: likely_device(plugins.devices, name))
    reading = dialect.read(document, surroundings)
    return Job(*reading._replace(cluster=completed(reading.cluster, document, request)), missed(request.target, reading.target))


def check_job(job: Job, plugins: Plugins, policy: Policy) -> tuple[list[Finding], list[Unchecked], list[Crash]]:
    """Every rule over one job; each in its own try."""
    path = job.documents[0].source.name
    findings: list[Finding] = []
    unknown: list[Unchecked] = []
    crashes: list[Crash] = []
    after, beside = {}, {}
    for rule, silent in plugins.selection(job.versions).of(job):
        if not policy.chosen(rule.id, path):
            continue
        try:
            if silent is not None and silent(job):
                continue
            said = list(rule.check(job, policy.options.get(rule.id, {})))
        except Exception as error:
            import traceback

            crashes.append(Crash(rule.id, path, f"{type(error).__name__}: {error}", traceback.format_exc()))
            continue
        if not said:
            continue
        after[rule.id], beside[rule.id] = rule.after, rule.beside
        findings += [item.of(rule.id, rule.severity, job.flow(item.span)) for item in said if isinstance(item, Finding)]
        unknown += [Unchecked(rule.id, path, item.because) for item in said if isinstance(item, Unverified) and item.because]
    fired = {f.rule for f in findings if f.severity is Severity.ERROR}
    there = {(f.rule, f.path, f.span.start) for f in findings if f.severity is Severity.ERROR}
    kept = [f for f in findings if not fired.intersection(after[f.rule]) and not any((id, f.path, f.span.start) in there for id in beside[f.rule])]
    return kept, unknown, crashes


def check_documents(
    documents: Iterable[Document],
    plugins: Plugins,
    request: Request,
    policy: Policy = Policy(),
    read: Read = lambda document, name: None,
) -> Report:
    """Check documents that were loaded. Raises InputError where a claimed file cannot be read as its framework reads it."""
    findings: list[Finding] = []
    unknown: list[Unchecked] = []
    crashes: list[Crash] = []
    jobs: list[Job] = []
    skipped: list[str] = []
    comments: dict[Any, Suppression] = {}
    again = _Again(plugins, request, policy, read)
    for document in documents:
        job = read_job(document, plugins, request, read)
        if job is None:
            skipped.append(document.source.name)
            continue
        jobs.append(job)
        found, unverified, failed = check_job(job, plugins, policy)
        found = _certain(document, found, job, again)
        findings, unknown, crashes = findings + found, unknown + unverified, crashes + failed
        comments.update({(s.span.path, s.span.start): s for d in job.documents for s in suppressions(d)})
    findings = _distinct(findings)
    unsure = {(u.rule, u.path) for u in unknown}
    kept = unsuppressed(findings, tuple(comments.values()), policy.chosen, unsure, lambda: {rule.id for rule in plugins.rules(None)})
    hidden = len(findings) - sum(f.rule != UNUSED for f in kept)
    checked = tuple(dict.fromkeys(d.source.name for job in jobs for d in job.documents[:1]))
    skipped = [name for name in dict.fromkeys(skipped) if name not in checked]
    rules = _fired(kept, jobs, plugins)
    kept.sort(key=order)
    return Report(tuple(kept), tuple(jobs), tuple(dict.fromkeys(unknown)), tuple(crashes), tuple(skipped), hidden, checked, rules=rules)


class _Again(NamedTuple):
    """What documents are checked with, to check one again as if something were otherwise."""

    plugins: Plugins
    request: Request
    policy: Policy
    read: Read

    @property
    def targets(self) -> tuple[Target, ...]:
        """The releases that are described."""
        return tuple(target for dialect in self.plugins.dialects for target in dialect.targets)

    def job(self, document: Document, target: Target | None = None) -> Job | None:
        """A document as a config of another target where one is given; None where it is nobody's."""
        request = self.request._replace(target=target) if target is not None else self.request
        return read_job(document, self.plugins, request, self.read)

    def findings(self, job: Job) -> list[Finding]:
        """What is found in it."""
        return check_job(job, self.plugins, self.policy)[0]


def _certain(document: Document, found: list[Finding], job: Job, again: _Again) -> list[Finding]:
    """What was found, less certain where it holds with a script's default number of nodes only, or as another release than the run's own."""
    if not any(f.severity is Severity.ERROR for f in found):
        return found
    asked = again.request.target
    if (name := assumed(document, again.request)) and document.launch is not None:
        others = map(again.job, elsewhere(document, document.launch))
        found = supposed(found, (again.findings(other) for other in others if other is not None), name)
    found = split(found, job)
    option, earlier = strange(job)
    if option:
        return foreign(found, [] if earlier else _oldest(document, job, again), job, option)
    if asked is None or asked == job.target:
        return found
    near = around(asked, again.targets)
    if near == (job.target,):
        return alone(found, asked, job.target)
    for target in near:
        if target != job.target and (there := again.job(document, target)) is not None:
            if older(asked, near) and beneath(job.versions, job.target) == beneath(there.versions, target) != {}:
                return alone(found, asked, job.target)
            return doubted(found, again.findings(there), asked, target)
    return found


def _oldest(document: Document, job: Job, again: _Again) -> list[Finding]:
    """What is found as the oldest described release; nothing where it is built on the same one as the run's own, and so tells nothing of others."""
    oldest = next(iter(around(Target(job.target.framework, "0"), again.targets)), job.target)
    there = again.job(document, oldest) if oldest != job.target else None
    return again.findings(there) if there is not None and not beneath(there.versions, oldest) else []


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


def _distinct(findings: Iterable[Finding]) -> list[Finding]:
    """One finding where several runs of a script say the same about the same place."""
    return list({(f.rule, f.path, f.span.start, f.message): f for f in findings}.values())
