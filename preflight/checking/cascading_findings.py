"""Findings that only follow from another one: they are left out, because fixing the cause fixes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.job import Job
from preflight.lint.rule import Checkable
from preflight.run.value import known
from preflight.source.finding import Finding, Kind, Related, Severity, continued
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import replace

_DEVICES = "device-count"
_GROUPS = ("unused-option-variable", "undefined-option-variable", "array-first-word", "lost-continuation")
_UNREACHED = "script-ends-before-launch"
_FLAG = lazy_pattern(r"--[\w-]+")


def fold(
    found: Sequence[Finding], job: Job, rules: Mapping[str, Checkable], kept: frozenset[str] = frozenset()
) -> list[Finding]:
    """The findings of a run without those that follow from others.

    rules: the rules that created them, by id; kept: rules whose findings are never removed.
    """
    unreached = [finding for finding in found if finding.rule == _UNREACHED]
    said = _said_by_others(unreached or found, rules)
    alone = len(said) < 2
    left = said if alone else _of_lost_groups(_of_sizes(_of_sections(_of_one_value(said)), job, rules), job, rules)
    if not kept:
        return left
    there = {(f.rule, f.path, f.span.start) for f in left}
    return [*left, *(f for f in found if f.rule in kept and (f.rule, f.path, f.span.start) not in there)]


def _said_by_others(found: Sequence[Finding], rules: Mapping[str, Checkable]) -> list[Finding]:
    """Findings that repeat what another rule already reports, as an error or at least as severely."""
    errors = [f for f in found if f.severity is Severity.ERROR]
    fired, there = {f.rule for f in errors}, {(f.rule, f.path, f.span.start) for f in errors}
    warned = {f.rule for f in found if f.severity is Severity.WARNING}
    return [
        f
        for f in found
        if not fired.intersection(rules[f.rule].after)
        and not (f.severity is not Severity.ERROR and warned.intersection(rules[f.rule].after))
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


def _of_sizes(found: Sequence[Finding], job: Job, rules: Mapping[str, Checkable]) -> list[Finding]:
    return _of_refused_sizes(_of_misfit_sizes(found, job), job, rules)


_SHAPES = ("model.", "layout.", "batch.micro")


_PUBLISHED = "differs-from-published"
_DEFECT = "/known-defect-"
_EXPERTS = ("expert-grid", "expert_tensor_parallel_size")
"""The check of the ranks of experts, and the degree that it asks to change."""


def _of_error(finding: Finding, errors: Sequence[Finding], rules: Mapping[str, Checkable]) -> bool:
    """A size that differs from the published one and is refused anyway; a defect of experts whose ranks do not fit."""
    if finding.rule == _PUBLISHED:
        return any((f.path, f.span.start) == (finding.path, finding.span.start) for f in errors)
    if _DEFECT not in finding.rule or all(f.rule != _EXPERTS[0] for f in errors):
        return False
    return _EXPERTS[1] in (rules[finding.rule].triggers or ())


def _of_refused_sizes(found: Sequence[Finding], job: Job, rules: Mapping[str, Checkable]) -> list[Finding]:
    """Where a size of the network or of the layout is refused, the memory is that of a run that was not meant."""
    errors = [f for f in found if f.severity is Severity.ERROR and f.kind is not Kind.MEMORY]
    if not errors or len(errors) == len(found):
        return list(found)
    found = [f for f in found if f.severity is Severity.ERROR or not _of_error(f, errors, rules)]
    if not any(f.kind is Kind.MEMORY for f in found):
        return list(found)
    sizes = (v for name, v in job.plan.values().items() if name.startswith(_SHAPES) and v.setting is not None)
    places = {(v.setting.span.path, v.setting.span.start) for v in sizes if v.setting is not None}
    if not any((f.span.path, f.span.start) in places for f in errors):
        return list(found)
    return [f for f in found if f.kind is not Kind.MEMORY]


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
        missing = {name for flag in flags for name in _set_by(flag) if job.arguments.given(name) is None}
        follow = [f for f in found if f is not cause and f.severity is Severity.ERROR and _misses(f, rules, missing)]
        if not missing or not follow:
            continue
        if cause.severity is Severity.ERROR:
            found = [f for f in found if f not in follow]
        else:
            first = next((f for f in follow if f.kind is Kind.ABSENCE), follow[0])
            kept = [f for f in found if f is not cause and (f is first or f not in follow)]
            found = [_with_cause(f, cause) if f is first else f for f in kept]
    return list(found)


_NEGATIONS = (("disable_", "add_"), ("no_", ""))


def _set_by(flag: str) -> tuple[str, ...]:
    """The arguments that an option may set: --disable-bias-linear sets add_bias_linear."""
    name = flag.strip("-").replace("-", "_")
    return (name, *(f"{on}{name.removeprefix(off)}" for off, on in _NEGATIONS if name.startswith(off)))


def _brought_back(cause: Finding) -> tuple[str, ...]:
    """Options that a correction of the text makes valid again."""
    edits = cause.fix.edits if cause.fix is not None and cause.severity is Severity.ERROR else ()
    return tuple(str(edit.key[0]) for edit in edits if edit.action == "splice" and edit.key)


def _misses(finding: Finding, rules: Mapping[str, Checkable], missing: set[str]) -> bool:
    reads = rules[finding.rule].triggers if finding.rule in rules else None
    if reads is not None:
        return not reads.isdisjoint(missing)
    named = {flag.strip("-").replace("-", "_") for flag in _FLAG.findall(finding.message)}
    return (finding.kind.of_release or finding.kind is Kind.NO_VALUE) and not named.isdisjoint(missing)


def _with_cause(finding: Finding, cause: Finding) -> Finding:
    """The finding with its cause, and only with the fix of the cause."""
    message = continued(finding.message, cause.message)
    related = (*finding.related, Related(cause.span, "never used"))
    return replace(finding, message=message, related=related, fix=cause.fix, alternatives=cause.alternatives)
