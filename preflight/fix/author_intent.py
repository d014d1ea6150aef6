"""The probable intention of the author of a faulty value, if the published model, earlier commits or nearby files show
it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Report
from preflight.job import Job
from preflight.run.published_models import published
from preflight.run.value import Value
from preflight.source.finding import Change, Finding, Fix, Message, Safety, Severity
from preflight.source.record import NamedTuple, replace
from preflight.source.source_file import InputError, Source
from preflight.source.untrusted_repository import Repository

MOST_COMMITS = 4
MOST_SIBLINGS, MOST_NAMES = 5, 400
MOST_CHARACTERS = 60_000
"""Limit for a file that is compared."""
ALIKE = 0.6
"""The share of common settings whose values must be equal in a sibling file."""
SIZES = ("hidden", "heads", "query_groups", "ffn", "experts", "top_k", "layers")


class Meant(NamedTuple):
    """The value of an argument elsewhere. where: its source; sure: it is the same run."""

    name: str
    value: object
    where: str
    sure: bool = True


class Elsewhere(NamedTuple):
    """The compared values of a run in another source. same: the same run at another time."""

    values: Mapping[str, object]
    where: str
    same: bool = True


def with_intentions(workspace: Workspace, report: Report) -> Report:
    """The report in which the first fix of an error is the author's intention, if that is known."""
    if not any(_open(finding) for finding in report.findings):
        return report
    found = _Intentions(workspace, report)
    return replace(report, findings=tuple(found.of(f) if _open(f) else f for f in report.findings))


def _open(finding: Finding) -> bool:
    """Whether an error points at several values, only one of which is wrong."""
    return finding.severity is Severity.ERROR and bool(finding.related) and not _written(finding.fix)


def _written(fix: Fix | None) -> bool:
    """Whether a fix certainly matches the intention: a corrected typo, or unchanged training."""
    return fix is not None and not fix.offered and (fix.change is Change.CORRECTION or fix.safety is Safety.SAFE)


class _Intentions:
    """Facts about the runs of one report; other files are opened when the first error needs them."""

    def __init__(self, workspace: Workspace, report: Report) -> None:
        self.workspace, self.report = workspace, report
        self.others: dict[int, list[Elsewhere]] = {}
        self.alone = not workspace.request.follow or workspace.checkouts.isolated

    def of(self, finding: Finding) -> Finding:
        """The finding with the intended value as its first fix."""
        for job in self.report.jobs:
            values = _pointed(finding, job)
            if len(values) > 1 and (meant := self._meant(job, values)) is not None:
                return _with(finding, meant, job)
        return finding

    def _meant(self, job: Job, values: Mapping[str, Value]) -> Meant | None:
        if (found := _as_published(job, values)) is not None:
            return found
        if self.alone:
            return None
        if id(job) not in self.others:
            self.others[id(job)] = [*self._earlier(job), *self._beside(job)]
        ways: list[Meant] = []
        for other in self.others[id(job)]:
            differ = [name for name, value in values.items() if other.values.get(name, value.raw) != value.raw]
            known = all(name in other.values for name in values)
            if known and len(differ) == 1:
                meant = other.values[differ[0]]
                sure = other.same or _is_slip(values[differ[0]].raw, meant)
                ways.append(Meant(differ[0], meant, other.where, sure))
        return ways[0] if ways and all(way[:2] == ways[0][:2] for way in ways) else None

    def _earlier(self, job: Job) -> Iterator[Elsewhere]:
        """The run in the most recent commits."""
        source, number = job.documents[0].source, self.report.jobs.index(job)
        if source.path is None or len(source.text) > MOST_CHARACTERS:
            return
        with contextlib.suppress(InputError):
            repository = Repository(source.path.parent)
            for commit in repository.commits_of(source.path, MOST_COMMITS):
                data = repository.file(commit, source.path)
                text = Source.decode(data, source.name).text if data is not None else source.text
                if text == source.text or len(text) > MOST_CHARACTERS:
                    continue
                with contextlib.suppress(InputError):
                    jobs = self.workspace.check({source.name: source.changed(text)}).jobs
                    if len(jobs) == len(self.report.jobs):
                        yield Elsewhere(_values(jobs[number]), Message("in commit {commit}", commit=commit[:9]))

    def _beside(self, job: Job) -> Iterator[Elsewhere]:
        """Runs of the files in the same folder that share most of their settings with this one."""
        path = job.documents[0].source.path
        own = _values(job)
        for sibling in _siblings(path) if path is not None else ():
            with contextlib.suppress(InputError):
                source = Source.read(sibling, limit=MOST_CHARACTERS)
                w = self.workspace
                report = Workspace([source], w.plugins, w.request, w.policy).check()
                for other in report.jobs:
                    if other.documents[0].kind == job.documents[0].kind and _alike(own, values := _values(other)):
                        yield Elsewhere(values, Message("in {file}", file=sibling.name), same=False)
                        break


def _siblings(path: Path) -> Sequence[Path]:
    """The files of the same kind in the folder of one, those of the nearest names first."""
    with contextlib.suppress(OSError):
        names = sorted(name for name in os.listdir(path.parent)[:MOST_NAMES] if name.endswith(path.suffix))
        names.sort(key=lambda name: -_shared(name, path.name))
        return [path.parent / name for name in names if name != path.name][:MOST_SIBLINGS]
    return ()


def _is_slip(typed: object, meant: object) -> bool:
    """Whether a number is another one with a typo: one more or less, or an extra, missing, swapped or wrong digit."""
    one, other = str(typed), str(meant)
    if not (one.isdecimal() and other.isdecimal()):
        return False
    short, long = sorted((one, other), key=len)
    if len(short) < len(long):
        return len(long) == len(short) + 1 and any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
    differ = sum(a != b for a, b in zip(one, other, strict=True))
    return abs(int(one) - int(other)) == 1 or (len(one) > 1 and (differ == 1 or sorted(one) == sorted(other)))


def _shared(name: str, other: str) -> int:
    """The length of the common beginning of two names."""
    return next((at for at, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), min(len(name), len(other)))


def _values(job: Job) -> dict[str, object]:
    return {name: value.raw for name, value in job.arguments.written.items() if value.known}


def _alike(own: Mapping[str, object], other: Mapping[str, object]) -> bool:
    both = own.keys() & other.keys()
    return len(both) >= max(5, len(own) // 2) and sum(own[name] == other[name] for name in both) >= ALIKE * len(both)


def _pointed(finding: Finding, job: Job) -> dict[str, Value]:
    """The explicit values at which a finding points."""
    spans = (finding.span, *(related.span for related in finding.related))
    places = {(span.path, span.start) for span in spans}
    found = {}
    for name, value in job.arguments.written.items():
        place = job.place(value)
        if value.known and (place.path, place.start) in places:
            found[name] = value
    return found


def _as_published(job: Job, values: Mapping[str, Value]) -> Meant | None:
    """The one size that differs from the published model that the run names, if all others match."""
    names = job.plan.model.names.raw
    if not isinstance(names, tuple) or (model := published(names)) is None:
        return None
    sizes = {name: getattr(job.plan.model, name) for name in SIZES if name in model.sizes}
    odd = [name for name, size in sizes.items() if not size.known or (size.written and size.raw != model.sizes[name])]
    if len(odd) != 1 or len(sizes) < 4:
        return None
    place = job.place(sizes[odd[0]])
    wanted = next((name for name, value in values.items() if job.place(value) == place), None)
    found = Message("in {model}", model=model.name)
    return Meant(wanted, model.sizes[odd[0]], found) if wanted is not None else None


def _with(finding: Finding, meant: Meant, job: Job) -> Finding:
    """The finding with one value set as elsewhere, before its other fixes."""
    edits = tuple(job.arguments.put(meant.name, meant.value))
    if not edits:
        return finding
    title = Message(
        "set {option} {value}, as {where}", option=job.arguments.spell(meant.name), value=meant.value, where=meant.where
    )
    ways = [fix for fix in (finding.fix, *finding.alternatives) if fix is not None and fix.edits != edits]
    others = tuple(fix._replace(offered=True) for fix in ways)
    fix = Fix(title, edits, Safety.UNSAFE, Change.CORRECTION, offered=not meant.sure)
    return replace(finding, fix=fix, alternatives=others)
