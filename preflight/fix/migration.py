"""Rewrites a file for another release of its framework: refused settings are fixed, and defaults that matter are
written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from preflight.checking.checked_sources import Workspace
from preflight.checking.configured_checker import Checker
from preflight.checking.engine import Report
from preflight.checking.migration_effects import Changed, Migration, counts, migrations, option_text
from preflight.fix.fix_proof import made, prove_better
from preflight.fix.fixer import Fixed, Outcome, fix
from preflight.fix.permitted_fixes import Inside
from preflight.job import Job
from preflight.loaders.document import Unknown
from preflight.run.request import Target
from preflight.source.finding import Edit, Finding, Fix, Message, NotProven, Severity
from preflight.source.record import NamedTuple
from preflight.source.source_file import Source

PIN = "changed-default"
DECISION = "needs a decision: {option} determines what is trained"
WAYS = "needs a decision: {ways}"


class Rewritten(NamedTuple):
    """The original runs of a file, and the result of a rewrite. found: each run compared with itself in the other
    release, after the rewrite; result: the new texts; pinned: the defaults that are written out; left: changes that
    only a person can make, with the reason."""

    found: list[Migration]
    result: Fixed
    pinned: tuple[Changed, ...]
    left: tuple[Outcome, ...]

    @property
    def unpinned(self) -> tuple[Changed, ...]:
        """The defaults that change the training and cannot be written out."""
        return tuple(change for one in self.found for change in one.pins if change not in self.pinned)

    @property
    def doubtful(self) -> tuple[Changed, ...]:
        """Those of them that the run may set when it starts."""
        return tuple(
            change
            for one in self.found
            for change in one.pins
            if change in self.unpinned and added_at_start(one, change)
        )

    @property
    def accepted(self) -> bool:
        """Whether nothing remains that the other release refuses."""
        return not any(outcome.finding.severity is Severity.ERROR for outcome in self.left)


def rewritten(checker: Checker, source: Source, to: Target, inside: Inside | None = None) -> Rewritten:
    """The rewrite of a file for another release; nothing is written. Raises InputError if the source cannot be read."""
    found = migrations(checker, source, to)
    here = checker.workspace([source])
    there = Workspace(here.sources, here.plugins, here.request._replace(target=to), here.policy)
    new = {_identity(finding) for one in found for finding in one.new}
    jobs = {one.before.documents[0].run: one for one in found}

    def wanted(finding: Finding) -> bool:
        return _identity(finding) in new and not _decision(finding, jobs)

    result = fix(there, unsafe=True, offered=True, others=False, wanted=wanted, inside=inside)
    for outcome in [one for one in result.outcomes if one.state == "not proven" and one.finding.fix is not None]:
        result.outcomes += _with_what_follows(there, result, outcome.finding, lambda one: not _decision(one, jobs))
    done = tuple(outcome for outcome in result.outcomes if outcome.state == "fixed")
    reasons = {_identity(outcome.finding): outcome for outcome in result.outcomes if outcome.state != "fixed"}
    pinned = _pinned(there, found, result, inside)
    left = [
        reasons.get(_identity(finding)) or Outcome(finding, "needs a choice", _decision(finding, jobs))
        for finding in result.report.findings
        if finding.severity is not Severity.NOTE and _identity(finding) in new
    ]
    result.outcomes = list(done)
    return Rewritten(found, result, pinned, tuple(left))


def _with_what_follows(
    there: Workspace, result: Fixed, finding: Finding, wanted: Callable[[Finding], bool]
) -> list[Outcome]:
    """Apply a fix that causes new errors together with their fixes: a renamed option may require others."""
    first = made(there, result.report, [finding], result.edited)
    if isinstance(first, str):
        return []
    had = {_identity(one) for one in result.report.findings}
    errors = [one for one in first.report.findings if one.severity is Severity.ERROR and _identity(one) not in had]
    if not errors or not all(one.fix is not None and wanted(one) for one in errors):
        return []
    both = made(there, first.report, errors, {**result.edited, **first.edited})
    if isinstance(both, str):
        return []
    try:
        prove_better(result.report, both.report, [finding])
    except NotProven:
        return []
    _take(result, {**first.edited, **both.edited}, both.report)
    return [Outcome(one, "fixed", one.fix.title if one.fix is not None else "") for one in (finding, *errors)]


def _take(result: Fixed, edited: Mapping[str, Source], report: Report) -> None:
    """Keep new texts and the report on them."""
    for old in {document.source.name: document.source for j in result.report.jobs for document in j.documents}.values():
        if old.name in edited:
            result.before.setdefault(old.name, old)
    result.edited.update(edited)
    result.report = report


def _identity(finding: Finding) -> tuple[object, ...]:
    return (finding.rule, finding.path, finding.key, str(finding.message))


def _decision(finding: Finding, jobs: dict[int, Migration]) -> str:
    """Why a person must decide about a finding: there are several fixes, or the only one removes a setting or changes
    the training. "" if no decision is needed."""
    if finding.fix is not None and finding.fix.offered and finding.alternatives:
        ways = " or ".join(str(one.title) for one in (finding.fix, *finding.alternatives))
        return Message(WAYS, ways=ways)
    for edit in finding.fix.edits if finding.fix is not None else ():
        one = jobs.get(edit.run)
        if one is not None and (name := _decisive(edit, one)):
            return Message(DECISION, option=name)
    return ""


def _decisive(edit: Edit, one: Migration) -> str:
    """The option in an edit that affects the training, if the edit changes it."""
    if edit.action not in ("set", "remove") or not edit.key:
        return ""
    typed = {value.key: name for name, value in one.before.arguments.written.items()}
    name = typed.get(edit.key, "")
    arguments = one.before.arguments
    if edit.action == "remove":
        now, without = arguments.get(name).raw, arguments.default(name).raw
        same = not name or now == without or option_text(now) == option_text(without)
        matters = counts(arguments, name) if name in arguments.trains_with else arguments.keeps(name)
        return str(edit.key[-1]) if matters and not same else ""
    return str(edit.key[-1]) if name and arguments.decides(name) else ""


def _pinned(there: Workspace, found: list[Migration], result: Fixed, inside: Inside | None) -> tuple[Changed, ...]:
    """Write out the defaults that the other release changes and that affect the training."""
    if inside is not None and not all(map(inside, there.sources)):
        return ()
    done = []
    for one in found:
        run = one.before.documents[0].run
        for change in one.pins:
            if added_at_start(one, change):
                continue  # what is written here could override it
            job = next((job for job in result.report.jobs if job.documents[0].run == run), None)
            if job is not None and job.arguments.given(change.name) is None and _pin(there, job, change, result):
                done.append(change)
    return tuple(done)


def added_at_start(one: Migration, change: Changed) -> bool:
    """Whether a run may set an option when it starts, such as in "$@"."""
    return isinstance(one.before.arguments.get(change.name).raw, Unknown)


def _pin(there: Workspace, job: Job, change: Changed, result: Fixed) -> bool:
    """Write one default out, if that is proven to change nothing else and is accepted."""
    edits = job.arguments.put(change.name, change.before)
    if not edits:
        return False
    title = Message("write {option} {value}", option=change.option, value=option_text(change.before))
    finding = Finding(title, job.start, rule=PIN, fix=Fix(title, edits))
    tried = made(there, result.report, [finding], result.edited)
    if isinstance(tried, str) or not _taken(result.report, tried.report, change, job):
        return False
    _take(result, tried.edited, tried.report)
    return True


def _taken(before: Report, after: Report, change: Changed, job: Job) -> bool:
    """Whether a default that is written out is read as intended, and refused nowhere."""
    try:
        prove_better(before, after, ())
    except NotProven:
        return False
    now = next((one for one in after.jobs if one.documents[0].run == job.documents[0].run), None)
    return now is not None and option_text(now.arguments.get(change.name).raw) == option_text(change.before)
