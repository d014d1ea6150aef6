"""Runs rules over documents, honours suppressions, sorts: documents → Report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from preflight.between import alone, around, assumed, doubted, elsewhere, missed, supposed
from preflight.device_names import find_device, likely_device
from preflight.dialects import Surroundings, claim
from preflight.dialects.communication import completed
from preflight.document import Document
from preflight.finding import Finding, Fix, Severity, Unverified
from preflight.job import Job
from preflight.plan import Plan
from preflight.plugins import Plugins
from preflight.record import NamedTuple, dataclass
from preflight.request import Request, Target
from preflight.rule import Checkable
from preflight.spelling import did_you_mean, nearest
from preflight.suppression import Suppression, suppressions

Read = Callable[[Document, str], Document | None]
UNUSED = "unused-suppression"
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
        after[rule.id], beside[rule.id] = rule.after, getattr(rule, "beside", ())
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
    for document in documents:
        job = read_job(document, plugins, request, read)
        if job is None:
            skipped.append(document.source.name)
            continue
        jobs.append(job)
        found, unsure, failed = check_job(job, plugins, policy)
        found = _certain(document, found, job.target, plugins, request, policy, read)
        findings, unknown, crashes = findings + found, unknown + unsure, crashes + failed
        comments.update({(s.span.path, s.span.start): s for d in job.documents for s in suppressions(d)})
    findings = _distinct(findings)
    kept = _suppress(findings, tuple(comments.values()), policy, {(u.rule, u.path) for u in unknown}, plugins)
    hidden = len(findings) - sum(f.rule != UNUSED for f in kept)
    checked = tuple(dict.fromkeys(d.source.name for job in jobs for d in job.documents[:1]))
    skipped = [name for name in dict.fromkeys(skipped) if name not in checked]
    rules = _fired(kept, jobs, plugins)
    kept.sort(key=order)
    return Report(tuple(kept), tuple(jobs), tuple(dict.fromkeys(unknown)), tuple(crashes), tuple(skipped), hidden, checked, rules=rules)


def _certain(document: Document, found: list[Finding], target: Target, plugins: Plugins, request: Request, policy: Policy, read: Read) -> list[Finding]:
    """What was found, less certain where it holds with a script's default number of nodes only, or as one of the releases around the one asked for."""
    if not any(f.severity is Severity.ERROR for f in found):
        return found
    if (name := assumed(document, request)) and document.launch is not None:
        jobs = (read_job(other, plugins, request, read) for other in elsewhere(document, document.launch))
        found = supposed(found, (check_job(job, plugins, policy)[0] for job in jobs if job is not None), name)
    if request.target is None or request.target == target:
        return found
    near = around(request.target, (target for dialect in plugins.dialects for target in dialect.targets))
    found = alone(found, request.target, target) if near == (target,) else found
    for other in near:
        if other != target and (job := read_job(document, plugins, request._replace(target=other), read)) is not None:
            return doubted(found, check_job(job, plugins, policy)[0], request.target, other)
    return found


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


def _suppress(findings: list[Finding], comments: Sequence[Suppression], policy: Policy, unsure: Set[tuple[str, str]], plugins: Plugins) -> list[Finding]:
    """The findings that no comment covers, and those about comments."""
    used: set[tuple[str, int, str]] = set()
    kept = []
    for finding in findings:
        covering = [c for c in comments if c.covers_finding(finding.rule, finding.span)]
        used |= {(c.span.path, c.span.start, finding.rule) for c in covering}
        if not covering:
            kept.append(finding)
    for comment in comments:
        where = comment.span
        if policy.chosen(UNUSED, where.path):
            unused = [id for id in comment.ids if (where.path, where.start, id) not in used and (id, where.path) not in unsure]
            kept += _faults(comment, [id for id in unused if policy.chosen(id, where.path)], plugins)
    return kept


def _faults(comment: Suppression, unused: Sequence[str], plugins: Plugins) -> Iterable[Finding]:
    """A suppression that names no rule, gives no reason, names a rule that does not exist, or hides nothing."""

    def fault(message: str, fix: Fix | None = None) -> Finding:
        return Finding(message, comment.span, fix=fix, rule=UNUSED, severity=Severity.WARNING)

    if not comment.ids:
        yield fault("a suppression names its rules: # preflight: ignore[rule-id] reason")
    elif not comment.reason:
        yield fault("a suppression gives its reason after the bracket")
    known = {rule.id for rule in plugins.rules(None)} if unused else set()
    for id in unused:
        if id in known:
            yield fault(f"nothing here is found by {id!r}; the suppression is not needed", comment.removal() if len(comment.ids) == 1 else None)
        else:
            close = nearest(id, known)
            yield fault(f"there is no rule {id!r}{did_you_mean(id, known)}", comment.renaming(id, close) if close else None)
