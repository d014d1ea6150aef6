"""Runs rules over documents, honours suppressions, sorts: documents → Report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from preflight.checking.nearby_file_access import NOTHING, Beside
from preflight.dialects import Surroundings, claim
from preflight.dialects.device_and_release import completed
from preflight.job import Job
from preflight.lint.rule import Checkable
from preflight.lint.suppression import UNUSED as UNUSED
from preflight.lint.suppression import suppressions, unsuppressed
from preflight.lint.uncertain_facts import missed
from preflight.loaders.document import REFUSED, Document
from preflight.plugins.manager import Plugins
from preflight.run.cluster import find_device, likely_device
from preflight.run.request import Request
from preflight.run.training_plan import Plan
from preflight.run.unmodelled_features import Unmodelled
from preflight.source.finding import Finding, Kind, Message, Severity, Unverified
from preflight.source.record import NamedTuple, dataclass, replace
from preflight.source.resolved_words import Needed, needed
from preflight.source.source_file import Span
from preflight.source.typing_without_import import Any

MOST_FINDINGS = 100
"""Limit for one rule in one file."""


MOST_OF_A_RULE = 200
"""Limit of findings taken from a rule in one run, because each may take milliseconds."""
MORE = "and {count:,} more findings of {rule} in this file"
MANY_MORE = "and at least {count:,} more findings of {rule} in this file"
UNCOUNTED = "this file has more of these findings than preflight counts"


def some_of(found: Iterable[Finding | Unverified], start: Span) -> list[Finding | Unverified]:
    """The reports of a rule, up to a limit; one finding with the rule's severity represents the rest. start: the start
    of the run."""
    rest = iter(found)
    said = list(islice(rest, MOST_OF_A_RULE))
    if len(said) == MOST_OF_A_RULE and next(rest, None) is not None:
        place = next((item.span for item in reversed(said) if isinstance(item, Finding)), start)
        said.append(Finding(UNCOUNTED, place))
    return said


def bounded(findings: Sequence[Finding]) -> list[Finding]:
    """The findings in the same order; if a rule has too many in a file, only the most severe ones, the earliest first,
    and one finding that counts the others."""
    counts = Counter((finding.path, finding.rule) for finding in findings)
    crowded = {key for key, number in counts.items() if number > MOST_FINDINGS + 1}
    if not crowded:
        return list(findings)
    places: dict[tuple[str, str], list[int]] = {}
    for index, finding in enumerate(findings):
        if (key := (finding.path, finding.rule)) in crowded:
            places.setdefault(key, []).append(index)
    dropped: dict[int, Finding | None] = {}
    for found in places.values():
        rest = sorted(sorted(found, key=lambda index: _order(findings[index]))[MOST_FINDINGS:])
        dropped.update(dict.fromkeys(rest))
        dropped[rest[0]] = _more([findings[index] for index in rest])
    kept = (dropped.get(index, finding) for index, finding in enumerate(findings))
    return [finding for finding in kept if finding is not None]


def _order(finding: Finding) -> tuple[bool, int]:
    """The most severe first; findings that summarize others come last."""
    return finding.message == UNCOUNTED, -_rank(finding)


def _rank(finding: Finding) -> int:
    return finding.severity.rank if finding.severity is not None else 0


def _more(rest: Sequence[Finding]) -> Finding:
    """One finding that summarizes all omitted ones, at the place of the first."""
    gravest = max(rest, key=_rank)
    template = MANY_MORE if any(finding.message == UNCOUNTED for finding in rest) else MORE
    message = Message(template, count=len(rest), rule=gravest.rule)
    return Finding(message, rest[0].span, severity=gravest.severity, rule=gravest.rule)


class Crash(NamedTuple):
    """A rule that failed; this is never hidden and is not a finding."""

    rule: str
    path: str
    error: str
    trace: str


class Unchecked(NamedTuple):
    """Something a rule could not verify on a file."""

    rule: str
    path: str
    because: str
    needs: Needed | None = None
    """The one fact that would make it verifiable, if there is exactly one."""


class Unreadable(NamedTuple):
    """A file that could not be read as what it is; line and column are 0 when no place is known."""

    path: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return ":".join([*(str(part) for part in self[:3] if part), f" {self.message}"])


TOO_DEEP = "a value is nested too deeply to be read"

Said = tuple[str, str, int, str]
"""The identity of a finding: its rule, its place and its message."""

OWN = "own-check"
"""The rule that reports what the program's source refuses."""


class Policy(NamedTuple):
    """How rules are run. chosen: whether a rule runs on a path; options: per rule; kept: never folded into others.

    reported: whether a finding of a rule that ran is reported; None if all are. errors_only: only those rules run whose
    findings can be errors.
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
    """The results of a check. skipped: files that no dialect claims. unknown: unverified checks. errors: files
    that cannot be read.

    looked: other files that were opened, or looked for and not found: their contents affect the report.
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
    """The rules that created the findings, sorted by id."""

    reads: tuple[str, ...] = ()
    """The names set by the caller that something reads."""

    @property
    def files(self) -> tuple[str, ...]:
        """The checked files, and the other files that have findings, such as a script that a checked one sources."""
        return tuple(dict.fromkeys([*self.checked, *(finding.path for finding in self.findings)]))

    @property
    def plan(self) -> Plan | None:
        """The plan of the first run, None when nothing was read."""
        return self.jobs[0].plan if self.jobs else None

    @property
    def accepted(self) -> bool:
        """Everything was read, and there is no error except a predicted out-of-memory, which `fits` reports."""
        unjudged = any(not crash.rule for crash in self.crashes)
        return not self.errors and not unjudged and not any(map(_refuses, self.findings))

    @property
    def undecided(self) -> bool:
        """Whether the program's source left the verdict open; `unknown` names the facts that would decide it."""
        return any(job.judged is not None and job.judged.undecided for job in self.jobs)

    @property
    def fits(self) -> bool:
        """Everything was read and accepted, and no run is predicted to exceed memory."""
        out = any(f.severity is Severity.ERROR and f.kind is Kind.MEMORY for f in self.findings)
        return self.accepted and not out and not any(j.cluster.budget and j.memory.replaced for j in self.jobs)


def _refuses(finding: Finding) -> bool:
    """Whether a finding means that the run cannot start; running out of memory is not counted."""
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
        plan = replace(reading.plan, unmodelled=(*reading.plan.unmodelled, Unmodelled.SCRIPT_THAT_BASH_REFUSES))
        reading = reading._replace(plan=plan)
    made = reading._replace(cluster=completed(reading.cluster, document, request, reading.plan))
    job = Job(*made, missed(request.target, reading.target), stated=request.target)
    if request.site is not None:
        from preflight.site.run_inspection import looking

        job = replace(job, look=looking(request.site))
    if not job.arguments.certainty.sourced:
        return job
    from preflight.checking.program_findings import with_source

    return with_source(job, document, request, beside)


def check_job(job: Job, plugins: Plugins, policy: Policy) -> tuple[list[Finding], list[Unchecked], list[Crash]]:
    """All rules over one job, each with its own error handling."""
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
                unknown.append(Unchecked(rule.id, path, item.because, item.needs or needed(item.because)))
    if not findings:
        return findings, unknown, crashes
    if job.judge is not None:
        from preflight.lint.overruled_findings import decided_by_source

        findings = decided_by_source(findings, job, OWN)
    from preflight.checking.cascading_findings import fold
    from preflight.checking.fix_policy import ranked

    return ranked(fold(findings, job, asked, policy.kept), job), unknown, crashes


def check_documents(
    documents: Iterable[Document],
    plugins: Plugins,
    request: Request,
    policy: Policy = Policy(),
    beside: Beside = NOTHING,
) -> Report:
    """Check loaded documents. Raises InputError if a claimed file cannot be read as its framework reads
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
    """The runs with the rules that refuse them; suppressed errors do not count."""
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
    """The findings, with uncertain errors lowered to warnings."""
    from preflight.lint.neighbouring_release_check import with_neighbours
    from preflight.lint.severity_downgrades import SecondLook, settled  # only runs with errors need them

    look = SecondLook(
        request,
        lambda: (target for dialect in plugins.dialects for target in dialect.targets),
        lambda document, asked: read_job(document, plugins, asked, beside),
        lambda job: check_job(job, plugins, policy)[0],
    )
    return with_neighbours(document, settled(document, found, job, look), job, look)


def _unsuppressed(
    findings: Sequence[Finding], jobs: Sequence[Job], unknown: Sequence[Unchecked], plugins: Plugins, policy: Policy
) -> list[Finding]:
    """The findings that no comment of the documents suppresses, and those about the comments themselves."""
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
    """One finding where several runs report the same at the same place."""
    return list({(f.rule, f.path, f.span.start, f.message): f for f in findings}.values())
