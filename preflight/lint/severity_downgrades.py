"""The certainty of errors, decided only here: a doubtful error becomes a warning, or a note, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from preflight.job import Job
from preflight.lint.uncertain_facts import assumed, elsewhere, strange
from preflight.lint.upstream_evidence import evidence, refused_in
from preflight.loaders.document import Document, Problem
from preflight.run.request import Request, Target
from preflight.source.finding import Finding, Fix, Kind, Message, Related, Safety, Severity, continued
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple, replace

Doubt = Callable[[Finding], Finding | None]
"""A finding with a doubt taken into account; None if it is no longer a finding."""
POSITIONAL = lazy_pattern(r"\$\{([1-9]\d?):?-[\"']?\Z")
"""The start of a positional parameter's default, such as `${1:-`."""
LONGEST_DEFAULT = 8
LOST = "lost-continuation"
PARSER = "argparse"
"""Used instead of a file if the option parser refuses the run."""
SHOWN = 3
"""Options that one finding names."""


class SecondLook(NamedTuple):
    """How a document was read and checked, to repeat it under other assumptions. described: the releases that dialects
    describe. read: returns None for a document that no dialect claims.
    """

    request: Request
    described: Callable[[], Iterable[Target]]
    read: Callable[[Document, Request], Job | None]
    check: Callable[[Job], list[Finding]]


def settled(document: Document, found: list[Finding], job: Job, look: SecondLook) -> list[Finding]:
    """The findings, each with the severity that remains after considering the run's release, program, options and
    nodes."""
    found = _on_other_nodes(document, found, look)  # first, because it compares with unchanged findings
    found = _where_the_rest_runs(document, found, look)
    found = _with_added_options(document, found, job, look)
    doubts = (_of_a_checkout, _of_older_releases, _of_older_programs, _of_another_program, _of_releases, _of_words)
    found = _judged(found, [doubt for make in doubts if (doubt := make(job)) is not None])
    return _one_of_a_fork(found, job)


def _judged(found: Iterable[Finding], doubts: Sequence[Doubt]) -> list[Finding]:
    kept = []
    for finding in found:
        told: Finding | None = finding
        for doubt in doubts:
            told = doubt(told) if told is not None else None
        kept += [told] if told is not None else []
    return kept


def lowered(finding: Finding, because: str) -> Finding:
    """A warning instead of an error, with the reason."""
    reason = because if finding.severity is Severity.ERROR else finding.lowered
    return replace(finding, severity=Severity.WARNING, message=continued(finding.message, because), lowered=reason)


def noted(finding: Finding, because: str) -> Finding:
    """A note instead of an error, with the reason: the checked code is not the code that runs."""
    return replace(lowered(finding, because), severity=Severity.NOTE)


def offered_only(finding: Finding) -> Finding:
    """The finding with fixes that are only applied on request: in another release they may change the training. None
    only removes settings, because another release uses what this one ignores."""
    ways = (finding.fix, *finding.alternatives)
    kept = [_unsafe(way) for way in ways if way is not None and any(edit.action != "remove" for edit in way.edits)]
    return replace(finding, fix=next(iter(kept), None), alternatives=tuple(kept[1:]))


def _unsafe(fix: Fix) -> Fix:
    return fix._replace(safety=Safety.UNSAFE) if fix.safety is Safety.SAFE else fix


def _errors(found: Iterable[Finding]) -> set[tuple[str, str, int]]:
    return {(f.rule, f.path, f.span.start) for f in found if f.severity is Severity.ERROR}


def _on_other_nodes(document: Document, found: list[Finding], look: SecondLook) -> list[Finding]:
    """A script with only a default for its number of nodes may be started with another number: errors that disappear
    with another number become warnings, and do not hide other errors."""
    variable = assumed(document, look.request)
    if not variable or document.launch is None:
        return found
    read = (look.read(other, look.request) for other in elsewhere(document, document.launch))
    others: Iterator[list[Finding]] = (look.check(other) for other in read if other is not None)
    always = {(f.rule, f.path, f.span.start, f.message): f for f in next(others, []) if f.severity is Severity.ERROR}
    said = {(f.rule, f.path, f.span.start, f.message): f for f in found}
    left = {key[:3] for key, f in said.items() if f.severity is Severity.ERROR and key not in always}
    cured: set[tuple[str, str, int]] = set()
    while cured != left and (other := next(others, None)) is not None:
        cured |= left - _errors(other)
    because = Message(
        "assumes the script's default for {name}; pass --nodes to check another number of nodes", name=variable
    )
    judged = (
        lowered(f, because) if f.severity is Severity.ERROR and key[:3] in cured else f for key, f in said.items()
    )
    return [*judged, *(f for key, f in always.items() if key not in said)]


def _where_the_rest_runs(document: Document, found: list[Finding], look: SecondLook) -> list[Finding]:
    """A launch to which bash passes only some of its words is also checked with only those: if it runs, the loss is a
    warning."""
    launch = document.launch
    if launch is None or not launch.lost:
        return found
    reached = len(launch.words) - launch.lost
    kept = tuple(problem for problem in document.problems if problem.kind != LOST)
    left = replace(document, launch=launch._replace(words=launch.words[: max(reached, 0)], lost=0), problems=kept)
    there = look.read(left, look.request) if reached >= 0 else None
    said = {(f.rule, f.path, f.span.start) for f in found}
    if there is None or not _errors(look.check(there)) <= said:
        return found
    lost = (f.kind is Kind.CUT and f.severity is Severity.ERROR for f in found)
    return [replace(f, severity=Severity.WARNING) if low else f for f, low in zip(found, lost, strict=True)]


def _with_added_options(document: Document, found: list[Finding], job: Job, look: SecondLook) -> list[Finding]:
    """A launch whose caller may add options is also checked with assumed additions: an error that disappears then is a
    warning, a missing option a note."""
    launch, given = document.launch, job.arguments.assumed
    if not given or launch is None or not _errors(found):
        return found
    there = look.read(replace(document, launch=launch._replace(open=True)), look.request)
    if there is None:
        return found
    certain = _errors(look.check(there))
    because = Message("{name} may add options that change this", name=given[0].because)

    def doubt(finding: Finding) -> Finding:
        if finding.severity is not Severity.ERROR or (finding.rule, finding.path, finding.span.start) in certain:
            return finding
        made = offered_only(lowered(finding, because))
        return replace(made, severity=Severity.NOTE) if finding.kind is Kind.ABSENCE else made

    return _judged(found, [doubt])


def _of_a_checkout(job: Job) -> Doubt | None:
    """An error whose check is missing in the checkout becomes a note, or a warning if that is unknown, and none of its
    fixes is safe. Findings about defaults are dropped, because the checkout may have other ones.
    """
    certainty = job.arguments.certainty
    has = certainty.has
    if has is None:
        return (lambda finding: None if finding.rule in certainty.lacks else finding) if certainty.lacks else None
    template = "{target} checks this, but the code in this checkout does not ({evidence})"
    because: str = Message(template, target=str(job.target), evidence=certainty.evidence)
    if certainty.lying:
        template = "{target} checks this, but this checkout contains {lying} ({evidence})"
        because = Message(template, target=str(job.target), lying=certainty.lying, evidence=certainty.evidence)

    if certainty.patched:
        template = "{target} checks this; the code in this checkout patches it ({evidence})"
        because = certainty.older or Message(template, target=str(job.target), evidence=certainty.evidence)

    def judged(finding: Finding) -> Finding | None:
        if finding.rule in certainty.lacks:
            return None
        if finding.severity is Severity.NOTE or finding.kind is Kind.MEMORY:
            return finding
        own = offered_only(finding)
        if finding.kind.of_release and certainty.sets.intersection(_arguments(finding)):
            return None
        of_release = finding.kind.of_release or (certainty.lying != "" and finding.kind is Kind.GENERAL)
        refused = finding.severity is Severity.ERROR or bool(finding.lowered)
        if refused and of_release and has(finding.rule) is False:
            files = (finding.rule, (finding.upstream or "").partition(":")[0])
            here = (certainty.patched and not certainty.older) or any(map(certainty.lies_here, files))
            told = lowered(own, because) if here else _unfixed(noted(own, because))
            return told if finding.key or finding.kind is Kind.ABSENCE else None
        return own

    return judged


def _arguments(finding: Finding) -> Iterator[str]:
    """The arguments whose options a finding is about."""
    return (str(part).lstrip("-").replace("-", "_") for part in finding.key[-1:])


def _of_older_releases(job: Job) -> Doubt | None:
    """A refusal by a release is a warning if the options belong to a release before all described ones."""
    because = job.arguments.certainty.older
    if not because:
        return None

    def judged(finding: Finding) -> Finding:
        of_options = finding.kind.parses or finding.kind.of_release
        lower = finding.severity is Severity.ERROR and of_options
        lower_to = noted if job.arguments.certainty.older_entry else lowered
        return offered_only(lower_to(finding, because)) if lower else finding

    return judged


def _of_older_programs(job: Job) -> Doubt | None:
    """An error that older releases of a program do not report is a warning, if the release is not stated."""
    certainty = job.arguments.certainty
    newer = certainty.newer
    if certainty.stated or not (certainty.since or newer):
        return None

    def judged(finding: Finding) -> Finding:
        if finding.severity is not Severity.ERROR:
            return finding
        template = "{framework} before {first} accepts it; --target states the release"
        first = certainty.since.get(finding.rule, "")
        if not first and newer is not None and (first := newer(finding.rule)):
            template = (
                "{framework} before {first} may be built on a release that accepts it; --target states the release"
            )
        if not first:
            return finding
        return offered_only(lowered(finding, Message(template, framework=job.target.framework, first=first)))

    return judged


def _of_another_program(job: Job) -> Doubt | None:
    """If a program reads the file and may first set other values, an error becomes a warning, and what is missing a
    note. If it uses only some sections as the framework does, findings in these count; code of the framework that it
    skips refuses nothing, and findings that apply to every framework stay, without the upstream line."""
    certainty = job.arguments.certainty
    program, parts, apart = certainty.completed, certainty.parts, certainty.apart

    def in_parts(finding: Finding) -> Finding | None:
        left = (finding.upstream or "").startswith(apart)
        return finding if _section(finding, job) in parts and not left else None

    def without_code_apart(finding: Finding) -> Finding | None:
        if not (finding.upstream or "").startswith(apart):
            return finding
        return None if finding.kind.of_release else replace(finding, upstream=None)

    def uncertain(finding: Finding) -> Finding:
        because = Message("{program} reads this file and may set other values first", program=program)
        lower = noted if finding.kind is Kind.ABSENCE else lowered
        return _to_choose_from(lower(finding, because) if finding.severity is Severity.ERROR else finding)

    if program:
        return in_parts if parts else uncertain
    return without_code_apart if apart else None


def _to_choose_from(finding: Finding) -> Finding:
    """The finding with fixes to choose from: the program may set the missing value itself."""
    fix = finding.fix._replace(offered=True) if finding.fix is not None else None
    return replace(finding, fix=fix, alternatives=tuple(way._replace(offered=True) for way in finding.alternatives))


def _section(finding: Finding, job: Job) -> str:
    """The section of a config that a finding points into, "" for none."""
    document = next((one for one in job.documents if one.source.name == finding.path), None)
    entries = document.tree.entries if document is not None and document.tree is not None else ()
    before = [entry for entry in entries if entry.key.span.start <= finding.span.start]
    whole = document is None or finding.span.start <= document.start.start  # the finding is about the whole file
    return str(before[-1].key.value) if before and not whole else ""


def _slips(job: Job) -> set[int]:
    """The places of misspelt options and values: not an option that an earlier release has, not a value that is a
    longer name, and in a fork with additional options not one in lower case (`rmsnorm`)."""
    fork = any(_is_own_option(problem) for problem in job.arguments.problems)
    return {
        problem.span.start
        for problem in job.arguments.problems
        if problem.fix is not None and not problem.before and not _is_variant(problem.fix[1].text, problem.fix[2], fork)
    }


def _is_variant(text: str, known: str, fork: bool) -> bool:
    """Whether a fork may have a name that resembles a known one."""
    typed = text.strip("\"'")
    return _extends(text, known) or (fork and typed.islower() and typed == known.lower())


def _of_releases(job: Job) -> Doubt | None:
    """An error that only some of the possible releases report becomes a warning. An option that no release has
    indicates a fork: then the run may be of any release, and its options may differ."""
    known, certainty = evidence(job.target.framework), job.arguments.certainty
    if known is None or certainty.stated or certainty.has is not None:
        return None
    option = strange(job)
    if not option and not certainty.releases:
        return None
    possible = known.checked if option else certainty.releases
    described = [release for release in possible if _described(release, known.framework)]
    stacks = {release: certainty.stack(release) or {known.framework: release} for release in described or possible}
    fork = Message(
        "checked as {target}, which has no {option}, so the release may be a different one",
        target=str(job.target),
        option=option,
    )
    slips = _slips(job)
    near = {word for problem in job.arguments.problems if _is_own_option(problem) for word in _parts(problem.span.text)}

    def unsure(finding: Finding) -> bool:
        """Whether one of the releases may use a setting that a fix removes."""
        return (finding.kind.of_release and len(described) < len(possible)) or _not_all(finding, stacks) is not None

    def judged(finding: Finding) -> Finding:
        if finding.severity is Severity.NOTE:
            return offered_only(finding) if unsure(finding) else finding
        if option and finding.kind in (Kind.OPTIONS, Kind.ABSENCE):
            if finding.severity is not Severity.ERROR:
                return finding
            slip = finding.span.start in slips if finding.kind is Kind.OPTIONS else finding.fix is None
            if slip:
                return lowered(finding, fork)
            return _unfixed(noted(finding, fork))  # the fork may have it, or a default
        place = finding.upstream or ""
        rewrite = option and finding.kind is Kind.REWRITE and not known.in_all(place, job.target.version, described)
        if rewrite or _is_near(finding, near):
            return _unfixed(noted(finding, fork))
        because = _not_all(finding, stacks)
        return finding if because is None else _to_choose_from(offered_only(lowered(finding, because)))

    return judged


def _parts(option: str) -> list[str]:
    return option.partition("=")[0].lstrip("-").replace("_", "-").split("-")


def _is_near(finding: Finding, near: set[str]) -> bool:
    """Whether an option that only the fork has is about the data that a finding is about: the fork may read them in
    another form (`--use-dataset-manager` and the weights of --data-path)."""
    return "data" in _parts(str(finding.key[-1:][0]) if finding.key else "") and any(
        word.startswith("data") for word in near
    )


def _extends(text: str, known: str) -> bool:
    """Whether a value is a known one with an additional word: a variant of the fork, not a misspelling."""
    words, others = text.strip("\"'").replace("-", "_").split("_"), known.replace("-", "_").split("_")
    return len(words) > len(others) and others in (words[: len(others)], words[-len(others) :])


def _unfixed(finding: Finding) -> Finding:
    """The finding about a setting of a fork, without a fix, because no other program knows a better value."""
    return replace(finding, fix=None, alternatives=())


def _not_all(finding: Finding, stacks: Mapping[str, Mapping[str, str]]) -> Message | None:
    """The releases that report a finding, if not all do; None if all do, or nothing is known. stacks: release → the
    framework versions in its runs."""
    releases, framework = list(stacks), finding.rule.partition("/")[0]
    held = {release: refused_in(finding.rule, framework, stack) for release, stack in stacks.items()}
    alike = [release for release in releases if held[release] or held[release] is None]
    if len(alike) == len(releases) or not any(held.values()):
        return None
    first, last = alike[0], alike[-1]
    if last == releases[-1]:
        return Message("applies from {first} on; the options also fit {oldest}", first=first, oldest=releases[0])
    template = "applies from {first} to {last}; the options also fit {newest}"
    return Message(template, first=first, last=last, newest=releases[-1])


def _described(release: str, framework: str) -> bool:
    """Whether the checks of a release are described; a release of another framework is named as `name@release`."""
    name, _, version = release.rpartition("@")
    known = evidence(name or framework)
    return known is not None and known.described(version)


def _of_words(job: Job) -> Doubt:
    """A parsing fault in words that another release may read differently is a warning, and so is one in the default of
    a positional parameter: a default that no parser accepts represents an argument that must be passed."""
    doubted = job.arguments.certainty.doubted

    def judged(finding: Finding) -> Finding:
        parses = finding.kind.parses or finding.upstream == PARSER
        if finding.severity is not Severity.ERROR or not parses:
            return finding
        if finding.span.start in doubted:
            return lowered(finding, doubted[finding.span.start])
        place = finding.span
        before = place.source.text[max(0, place.start - LONGEST_DEFAULT) : place.start]
        if (parameter := POSITIONAL.search(before)) is not None:
            return lowered(finding, Message("this is the default value of ${number}", number=parameter[1]))
        return finding

    return judged


def _one_of_a_fork(found: list[Finding], job: Job) -> list[Finding]:
    """The findings, with a single one for several options that no release has: without its source, only the fact that
    it is another program is known."""
    certainty = job.arguments.certainty
    if certainty.stated or certainty.sourced or certainty.has is not None or not strange(job):
        return found
    problems = [p for p in job.arguments.problems if _is_own_option(p)]
    older = Severity.NOTE if certainty.older else Severity.WARNING  # then the options are the evidence of the release
    of_releases = [p for p in problems if p.in_use]
    found = _as_one(
        found,
        of_releases,
        job,
        "{target} does not have the options {options:and}, which other releases of {framework} have; --target states "
        "the release",
        older,
    )
    return _as_one(
        found,
        [p for p in problems if not p.in_use],
        job,
        "no release of {framework} has the options {options:and}, so this is a fork or another program; --program "
        "PATH gives its source",
    )


def _as_one(
    found: list[Finding],
    problems: Iterable[Problem],
    job: Job,
    template: str,
    severity: Severity = Severity.WARNING,
) -> list[Finding]:
    """The findings, with those about several options replaced by one."""
    unknown = {(p.span.path, p.span.start) for p in problems}
    own = [f for f in found if f.kind is Kind.OPTIONS and (f.path, f.span.start) in unknown]
    if len(own) < 2:
        return found
    options = tuple(dict.fromkeys(finding.span.text.partition("=")[0] for finding in own))
    message = Message(
        template,
        target=str(job.target),
        framework=job.target.framework,
        options=(*options[:SHOWN], *((f"{len(options) - SHOWN} more",) if len(options) > SHOWN else ())),
    )
    related = tuple(Related(finding.span) for finding in own[:SHOWN])
    told = Finding(message, job.start, related, upstream=PARSER, severity=severity, rule=own[0].rule)
    return [*(finding for finding in found if finding not in own), replace(told, kind=Kind.OPTIONS)]


def _is_own_option(problem: Problem) -> bool:
    """Whether an option is neither from an earlier release nor misspelt."""
    return problem.unknown_option and not problem.before and problem.fix is None
