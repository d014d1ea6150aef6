"""Findings that only follow from another one: they are left out, because fixing the cause fixes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.job import Job
from preflight.lint.rule import Checkable
from preflight.run.value import known
from preflight.source.finding import Finding, Kind, Message, Related, Severity
from preflight.source.pattern import lazy_pattern
from preflight.source.record import replace

_DEVICES = "device-count"
_GROUPS = ("unused-option-variable", "undefined-option-variable")
_FLAG = lazy_pattern(r"--[\w-]+")


def fold(
    found: Sequence[Finding], job: Job, rules: Mapping[str, Checkable], kept: frozenset[str] = frozenset()
) -> list[Finding]:
    """The findings of a run without those that follow from others.

    rules: the rules that created them, by id; kept: rules whose findings are never removed.
    """
    said = _said_by_others(found, rules)
    alone = len(said) < 2
    left = said if alone else _of_lost_groups(_of_misfit_sizes(_of_sections(_of_one_value(said)), job), job, rules)
    if not kept:
        return left
    there = {(f.rule, f.path, f.span.start) for f in left}
    return [*left, *(f for f in found if f.rule in kept and (f.rule, f.path, f.span.start) not in there)]


def _said_by_others(found: Sequence[Finding], rules: Mapping[str, Checkable]) -> list[Finding]:
    """Errors that repeat what another rule already reports."""
    errors = [f for f in found if f.severity is Severity.ERROR]
    fired, there = {f.rule for f in errors}, {(f.rule, f.path, f.span.start) for f in errors}
    return [
        f
        for f in found
        if not fired.intersection(rules[f.rule].after)
        and not any((id, f.path, f.span.start) in there for id in rules[f.rule].beside)
    ]


def _of_one_value(found: Sequence[Finding]) -> list[Finding]:
    """A value that several options take and none can read is one mistake."""
    kept: dict[tuple[object, ...], Finding] = {}
    for finding in found:
        same = (
            (finding.rule, finding.span.start)
            if finding.kind.parses and finding.severity is Severity.ERROR
            else (id(finding),)
        )
        kept.setdefault((finding.path, *same), finding)
    return list(kept.values())


def _of_sections(found: Sequence[Finding]) -> list[Finding]:
    """If a key of the layout is misspelt and refused, the layout and its memory are not the intended ones."""
    errors = [f for f in found if f.severity is Severity.ERROR and f.fix is not None and len(f.key) > 1]
    sections = {f.key[:-1] for f in errors if f.fix is not None and any(e.action == "rename" for e in f.fix.edits)}
    laid = {section for section in sections if "parallel" in str(section[-1])}
    if not laid:
        return list(found)
    return [f for f in found if not (f.layout or f.kind is Kind.MEMORY or (f.key[:-1] in laid and f not in errors))]


def _of_misfit_sizes(found: Sequence[Finding], job: Job) -> list[Finding]:
    """If an odd degree does not fit the devices, other findings about that degree follow from this one. A power of two
    is unlikely to be a typo: then the number of devices is wrong, and other findings about the degree remain after that
    is fixed."""
    cause = next((f for f in found if f.rule == _DEVICES and f.severity is Severity.ERROR), None)
    world = known(job.plan.layout.world)
    if cause is None or world is None:
        return list(found)
    layout = job.plan.layout
    degrees = (layout.tensor, layout.pipeline, layout.context)
    typed = [v for v in degrees if v.known and v.setting and isinstance(v.raw, int) and v.raw > 1]
    bad = [v for v in typed if world[0] % v.raw and v.raw & (v.raw - 1)]
    places = {(v.setting.span.path, v.setting.span.start) for v in bad if v.setting is not None}
    return [f for f in found if f is cause or not (f.layout and _points_at(f, places))]


def _points_at(finding: Finding, places: set[tuple[str, int]]) -> bool:
    spans = (finding.span, *(related.span for related in finding.related))
    return any((span.path, span.start) in places for span in spans)


def _of_lost_groups(found: Sequence[Finding], job: Job, rules: Mapping[str, Checkable]) -> list[Finding]:
    """Options missing from a group that no launch uses, or after a word that is not an option: the first finding
    reports it, and the others follow from it."""
    groups = {(p.kind, p.span.start): p.keys for d in job.documents for p in d.problems if p.kind in _GROUPS}
    for cause in found:
        flags = groups.get((cause.rule, cause.span.start), ()) or _brought_back(cause)
        missing = {name for flag in flags if job.arguments.given(name := flag.strip("-").replace("-", "_")) is None}
        follow = [f for f in found if f is not cause and f.severity is Severity.ERROR and _misses(f, rules, missing)]
        if not missing or not follow:
            continue
        if cause.severity is Severity.ERROR:
            found = [f for f in found if f not in follow]
        else:
            kept = [f for f in found if f is not cause and f not in follow[1:]]
            found = [_with_cause(f, cause) if f is follow[0] else f for f in kept]
    return list(found)


def _brought_back(cause: Finding) -> tuple[str, ...]:
    """Options that a correction of the text makes valid again."""
    edits = cause.fix.edits if cause.fix is not None and cause.severity is Severity.ERROR else ()
    return tuple(str(edit.key[0]) for edit in edits if edit.action == "splice" and edit.key)


def _misses(finding: Finding, rules: Mapping[str, Checkable], missing: set[str]) -> bool:
    reads = rules[finding.rule].triggers if finding.rule in rules else None
    if reads is not None:
        return not reads.isdisjoint(missing)
    named = {flag.strip("-").replace("-", "_") for flag in _FLAG.findall(finding.message)}
    return finding.kind.of_release and not named.isdisjoint(missing)


def _with_cause(finding: Finding, cause: Finding) -> Finding:
    ways = tuple(fix for fix in (cause.fix, finding.fix, *finding.alternatives) if fix is not None)
    message = Message("{message}; {cause}", message=finding.message, cause=cause.message)
    related = (*finding.related, Related(cause.span, "never used"))
    return replace(finding, message=message, related=related, fix=next(iter(ways), None), alternatives=ways[1:])
