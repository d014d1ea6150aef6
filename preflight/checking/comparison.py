"""What a change of a config means for its runs: arguments that differ, findings that come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from preflight.checking.engine import Report
from preflight.job import Job
from preflight.loaders.document import Unknown
from preflight.run.value import Value
from preflight.source.finding import Finding, Severity
from preflight.source.record import NamedTuple


class Difference(NamedTuple):
    """An argument that two runs have different values of. decides: what of the training it decides, "" for none of it.

    name: as people write it. typed: somebody writes it in one of the two; else it follows from others, or is a default.
    """

    name: str
    before: Value
    after: Value
    decides: str
    typed: bool


class RunChange(NamedTuple):
    """One run before and after a change; None where it is new, or gone."""

    before: Job | None
    after: Job | None
    differences: tuple[Difference, ...] = ()


class Comparison(NamedTuple):
    """A file before and after a change, by their names; "" where it is new, or gone. new, cured: findings."""

    before: str
    after: str
    runs: tuple[RunChange, ...]
    new: tuple[Finding, ...]
    cured: tuple[Finding, ...]

    @property
    def accepted(self) -> bool:
        """Whether the change brings no error."""
        return not any(finding.severity is Severity.ERROR for finding in self.new)

    @property
    def same(self) -> bool:
        """Whether nothing differs that preflight reads."""
        alike = all(run.before and run.after and not run.differences for run in self.runs)
        return alike and not self.new and not self.cured


def compare(before: Report | None, after: Report | None, names: tuple[str, str]) -> Comparison:
    """Two reports of a file beside each other; None where the file is new, or gone."""
    old, new = _found(before), _found(after)
    return Comparison(
        names[0],
        names[1],
        tuple(
            RunChange(one, two, tuple(_differences(one, two)) if one and two else ())
            for one, two in zip_longest(_runs(before), _runs(after))
        ),
        tuple(_without(new, old)),
        tuple(_without(old, new)),
    )


def _runs(report: Report | None) -> list[Job]:
    return sorted(report.jobs, key=lambda job: job.documents[0].run) if report else []


def _found(report: Report | None) -> list[Finding]:
    return [finding for finding in report.findings if finding.severity is not Severity.NOTE] if report else []


def _without(findings: Iterable[Finding], others: Iterable[Finding]) -> Iterator[Finding]:
    """The findings of which the others have none with the same rule and key."""
    left = Counter((finding.rule, finding.key, finding.severity) for finding in others)
    for finding in findings:
        identity = (finding.rule, finding.key, finding.severity)
        if left[identity]:
            left[identity] -= 1
        else:
            yield finding


def _differences(before: Job, after: Job) -> Iterator[Difference]:
    """Arguments with another value, those that somebody writes first. None where the frameworks differ."""
    if before.target.framework != after.target.framework:
        return
    one, two = before.arguments, after.arguments
    typed = dict.fromkeys((*one.written, *two.written))
    known = set(one.names()) & set(two.names())
    follow = [name for name in (*one.effective, *two.effective) if name in known]
    if before.target != after.target:
        follow += sorted(known)
    told = set[tuple[object, ...]]()
    for name in (*typed, *(name for name in dict.fromkeys(follow) if name not in typed)):
        old, new = one.get(name), two.get(name)
        place = _place(old), _place(new)
        if _differ(old, new, name in typed) and (place == ("", "") or place not in told):
            told.add(place)
            shown = name if "." in name else two.spell(name)
            yield Difference(shown, old, new, two.decides(name), name in typed)


def _place(value: Value) -> object:
    """Where a value is typed: a config may name one place several times."""
    return (value.span.path, value.span.start) if value.span is not None else ""


def _differ(old: Value, new: Value, typed: bool) -> bool:
    """Whether two values differ; an unknown one differs only from a known one that somebody writes, and from an unknown
    one that is typed in other words.

    A section is no value: its keys are.
    """
    unknown = isinstance(old.raw, Unknown), isinstance(new.raw, Unknown)
    if all(unknown) and old.span is not None and new.span is not None:
        return typed and old.span.text != new.span.text
    if any(unknown):
        return typed and not all(unknown) and (old.written or new.written)
    return bool(old.raw != new.raw) and not (_is_section(old.raw) or _is_section(new.raw))


def _is_section(raw: object) -> bool:
    return isinstance(raw, dict) or (isinstance(raw, (list, tuple)) and any(map(_is_section, raw)))
