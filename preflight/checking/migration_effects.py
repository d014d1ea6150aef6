"""The effects of another release of its framework on a run: findings that appear or disappear, values,
defaults."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.checking.configured_checker import Checker
from preflight.checking.engine import Report
from preflight.job import Job
from preflight.loaders.document import Unknown
from preflight.run.arguments import Arguments
from preflight.run.request import Target
from preflight.run.value import Value
from preflight.source.budget import watched
from preflight.source.finding import Finding, Severity
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError, Source


class Changed(NamedTuple):
    """An argument whose value changes in the other release. typed: it is set explicitly; otherwise its default changes.
    option: its spelling in a file, if that is not its name."""

    name: str
    before: object
    after: object
    value: Value
    typed: bool
    option: str


class Migration(NamedTuple):
    """One run read as its own release and as the other one: new findings, findings that disappear, and values."""

    before: Job
    after: Job
    new: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    changed: tuple[Changed, ...]

    @property
    def pins(self) -> tuple[Changed, ...]:
        """The defaults that affect the training: writing them out preserves it."""
        arguments = self.after.arguments
        return tuple(
            change
            for change in self.changed
            if not change.typed
            and (
                counts(arguments, change.name)
                if change.name in arguments.trains_with
                else arguments.decides(change.name)
            )
        )

    @property
    def accepted(self) -> bool:
        """Whether the other release accepts everything that this one accepts."""
        return not any(finding.severity is Severity.ERROR for finding in self.new)


def migrations(checker: Checker, source: Source, to: Target) -> list[Migration]:
    """Each run of a source, compared with itself in another release. Raises InputError if the source cannot be read as
    that."""
    workspace = checker.workspace([source])
    with watched(source.name):
        before = workspace.check()
        there = workspace.request._replace(target=to)
        after = type(workspace)(workspace.sources, workspace.plugins, there, workspace.policy).check()
    runs = {job.documents[0].run: job for job in after.jobs}
    for job in before.jobs:
        other = runs.get(job.documents[0].run)
        if other is None or other.target.framework != job.target.framework:
            raise InputError(f"is a run of {job.target}, not of {to.framework}", source.name)
    return [_migration(job, runs[job.documents[0].run], before, after) for job in before.jobs]


def _migration(before: Job, after: Job, was: Report, now: Report) -> Migration:
    run = before.documents[0].run
    old, new = _of_run(was, run), _of_run(now, run)
    return Migration(
        before,
        after,
        tuple(finding for place, finding in new.items() if place not in old),
        tuple(finding for place, finding in old.items() if place not in new),
        (*_typed(before, after), *_defaults(before, after)),
    )


def _of_run(report: Report, run: int) -> dict[tuple[object, ...], Finding]:
    """Errors and warnings by rule, place and severity; a script with several runs reports all of them in each."""
    told = (finding for finding in report.findings if finding.severity is not Severity.NOTE)
    return {(finding.rule, finding.span.start, finding.severity): finding for finding in told}


def _typed(before: Job, after: Job) -> Iterator[Changed]:
    """Explicitly set arguments that the two releases read differently."""
    for name, value in before.arguments.written.items():
        old, new = before.arguments.get(name), after.arguments.get(name)
        if name in after.arguments.written and _differ(old, new):
            yield Changed(name, old.raw, new.raw, value, typed=True, option=_option(after, name, new.raw))


def _defaults(before: Job, after: Job) -> Iterator[Changed]:
    """Arguments that are not set and whose defaults differ."""
    written = before.arguments.written
    for name in sorted(set(before.arguments.names()) & set(after.arguments.names())):
        old, new = before.arguments.default(name), after.arguments.default(name)
        if name not in written and _differ(old, new):
            yield Changed(name, old.raw, new.raw, new, typed=False, option=_option(after, name, new.raw))


def counts(arguments: Arguments, name: str) -> bool:
    """Whether another argument makes this one affect the training, or may do so."""
    switch, values = arguments.trains_with.get(name, ("", ()))
    raw = arguments.get(switch).raw if switch else None
    return bool(switch) and (isinstance(raw, Unknown) or (raw in values if values else raw not in (None, False)))


def option_text(value: object) -> str:
    """A value as it is typed."""
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _option(job: Job, name: str, value: object) -> str:
    """The option that sets an argument, or the name of the argument if there is none."""
    edits = job.arguments.put(name, value) or job.arguments.put(name, not value)
    return next((key for edit in edits for key in map(str, edit.key) if key.startswith("--")), name)


def _differ(old: Value, new: Value) -> bool:
    """Whether two known values differ in meaning. None, False and "" all mean "not set"; a number equals its text
    form."""
    if isinstance(old.raw, Unknown) or isinstance(new.raw, Unknown):
        return False
    return _meant(old.raw) != _meant(new.raw)


def _meant(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    return None if value is False or value == "" else value
