"""The text report: place, message, source lines and fix of each finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from preflight.checking.engine import Report
from preflight.job import Job, Site
from preflight.lint.upstream_evidence import switched_at
from preflight.report.framework_release import fits, heading, is_known, read_as
from preflight.report.source_excerpts_and_escapes import COLORS, Look, counted, excerpt, plain
from preflight.report.text_summary import Entry, Told, skipped_checks, texts
from preflight.source.finding import Finding, Fix, Safety, Severity
from preflight.source.translation import in_brackets, introduced, joined, local

UNKNOWN = "a value is unknown"
_HOW = {Safety.SAFE: "preflight fix", Safety.UNSAFE: "preflight fix --unsafe", Safety.SHOW: "by hand"}


MOST_PROGRAMS = 3
"""Maximum number of sources that the summary names."""


def render(report: Report, look: Look = Look()) -> str:
    """The whole report."""
    return shown(tell(report, look), look)


def tell(report: Report, look: Look) -> Told:
    """The parts of a report that are printed."""
    return Told(
        entries=tuple(_entry(finding, look) for finding in report.findings),
        unverified=tuple(_unverified(u.path, u.because or UNKNOWN, u.rule) for u in report.unknown),
        needs=tuple(u.needs.value if u.needs is not None else "" for u in report.unknown),
        targets=tuple(read_as(job) for job in report.jobs),
        details=tuple(_details(report)) if look.verbose else (),
        checked=report.checked,
        skipped=report.skipped,
        suppressed=report.suppressed,
        bounded=sum(not is_known(job) for job in report.jobs),
        unreadable=bool(report.errors),
        crashed=bool(report.crashes),
        reads=report.reads,
        programs=tuple(dict.fromkeys(plain(job.program) for job in report.jobs if job.program)),
        fits=tuple(plain(local(_fits(job))) for job in report.jobs if not is_known(job)),
    )


def _unverified(path: str, because: str, rule: str) -> str:
    return plain(f"{path}: {local('skipped')}: {local(because)} [{rule}]")


def shown(told: Told, look: Look) -> str:
    """The text of everything that is reported."""
    lines = list(texts(told.entries)) if look.grouped else [entry.text for entry in told.entries]
    if look.unknown:
        lines += told.unverified
    if not look.quiet:
        lines += summary(told, look)
    return "".join(f"{line}\n" for line in lines)


def _entry(finding: Finding, look: Look) -> Entry:
    assert finding.severity is not None
    written = finding.fix is not None and not finding.fix.offered and finding.severity is not Severity.NOTE
    severity, fix = finding.severity, finding.fix.safety.value if finding.fix is not None and written else ""
    text = "".join(f"{line}\n" for line in one(finding, look))
    about = plain(str(finding.values.get("text", "")))
    place = finding.path, finding.span.start, -severity.rank, finding.rule, finding.message
    return Entry(*place, severity.value, fix, text, finding.line, finding.template, about)


def one(finding: Finding, look: Look) -> Iterator[str]:
    """One finding; its first line is the concise form."""
    assert finding.severity is not None
    severity = look.paint(local(str(finding.severity)), COLORS[finding.severity])
    place = look.paint(plain(f"{finding.path}:{finding.line}:{finding.column}"), "bold")
    rule = look.link(plain(finding.rule), _page(finding.rule, look))
    yield f"{place}: {severity}: {plain(local(finding.message))} {look.paint(f'[{rule}]', 'cyan')}"
    yield from excerpt(finding, look)
    indent = " " * max(len(str(line)) for line in (finding.line, *(related.span.line for related in finding.related)))
    for head, fix in (("fix", finding.fix), *(("or", other) for other in finding.alternatives)):
        if fix is not None:
            yield f"{indent} {look.paint('=', 'dim')} {_fix(head, fix, finding, look)}"
    if finding.upstream and ":" in finding.upstream:
        yield f"{indent} {look.paint('=', 'dim')} {look.paint(local('upstream'), 'dim')}: {plain(finding.upstream)}"
    more = look.paint(local("more"), "dim")
    yield f"{indent} {look.paint('=', 'dim')} {more}: preflight explain {plain(finding.rule)}"


def _page(rule: str, look: Look) -> str | None:
    """The page of a rule, if the terminal can open it."""
    if not look.links:
        return None
    from preflight.report.rule_pages import section_link

    return section_link(rule)


def _fix(head: str, fix: Fix, finding: Finding, look: Look) -> str:
    how = "preflight fix --interactive" if fix.offered and fix.safety is not Safety.SHOW else local(_HOW[fix.safety])
    if finding.severity is Severity.NOTE and not fix.offered and fix.safety is not Safety.SHOW:
        how += f" --select {plain(finding.rule)}"  # notes are fixed if their rule is selected by name
    cost = f": {plain(local(fix.cost))}" if fix.cost else ""
    return f"{look.paint(local(head), 'green')}: {plain(local(fix.title))}{cost} ({how})"


def summary(told: Told, look: Look) -> Iterator[str]:
    """The summary: findings, checked files, possible fixes, and unverified checks."""
    if not told.files:
        return
    found = Counter(Severity(entry.severity) for entry in told.entries)
    files = counted(len(told.files), "file")
    targets = Counter(told.targets)
    read_as = ", ".join(name if len(targets) == 1 else f"{name} ({n})" for name, n in sorted(targets.items()))
    said = [counted(found[severity], str(severity)) for severity in Severity if found[severity]]
    text = joined(said)
    color = COLORS[told.worst or Severity.NOTE] if found else "green"
    much = local(f" in {files}, read as {read_as}." if read_as else f" in {files}.")
    yield f"{look.paint(_outcome(text, look.known), color)}{much}"
    if programs := tuple(dict.fromkeys(told.programs)):
        more = (f"{len(programs) - MOST_PROGRAMS} more",) if len(programs) > MOST_PROGRAMS else ()
        yield local(f"Checked against {'; '.join((*programs[:MOST_PROGRAMS], *more))}.")
    if told.bounded:
        yield (
            f"{_not_known(told)}{local('; state it with --target, or run `preflight init` to get proposed settings.')}"
        )
    fixes = Counter(entry.fix for entry in told.entries)
    ways = [
        f"{'up to ' * (count > 1)}{count} with `{_HOW[safety]}`"  # fixes are written only if a second check proves them
        for safety in (Safety.SAFE, Safety.UNSAFE)
        if (count := fixes[safety.value])
    ]
    if ways:
        yield local(f"Fixable: {joined(ways, '')}.")
    if told.unverified and not look.unknown:
        yield skipped_checks(told.needs)
    if look.verbose:
        yield from told.details
        if told.suppressed:
            yield local(f"Suppressed: {counted(told.suppressed, 'finding')}.")
        if told.skipped:
            skipped = counted(len(told.skipped), "file")
            yield local(f"Skipped: {skipped} not recognized as training configs.")


def _outcome(found: str, known: int) -> str:
    """The number of findings, and how many a baseline hides. found: "" if there are none."""
    if not known:
        return local(f"Found {found}" if found else "No problems found")
    new = local(f"Found {found}" if found else "No new findings")
    return in_brackets(new, local(f"{known} known hidden"))


def _fits(job: Job) -> str:
    """The possible releases of a run of unknown release; "" if that is not narrowed down."""
    return fits(job)


def _not_known(told: Told) -> str:
    """The sentence that releases are unknown, with those that fit if they are the same for all runs."""
    runs = counted(told.bounded, "run")
    text = local("The release is unknown" if told.bounded >= len(told.targets) else f"The release of {runs} is unknown")
    fits = set(told.fits)
    return introduced(text, fits.pop()) if len(fits) == 1 and "" not in fits else text


def _details(report: Report) -> Iterator[str]:
    for job in report.jobs:
        devices = job.cluster.count
        many = f"{devices.raw} devices" if devices.known else "an unknown number of devices"
        yield plain(f"{job.documents[0].source.name}: {local(f'read as {heading(job)}')}, {local(many)}")
        if job.program:
            yield plain(f"  {local(f'checked against {job.program}')}")
        if job.site is not None:
            yield from seen(job.site)
        for switch in job.arguments.switches:
            yield plain(
                f"  {local(f'{switch.name} changes from {switch.before} to {switch.after}')} ({local(switch.cause)}; "
                f"{switched_at(switch, job.versions)})"
            )


def seen(site: Site) -> Iterator[str]:
    """The files that were examined on this machine, and the samples that a run draws from its data."""
    yield plain(f"  {local(f'checked on {site.host}:')}")
    for one in site.opened:
        why = f" ({local(one.because)})" if one.because else ""
        yield plain(f"    {local(one.how)}: {one.path}{why}")
    if site.checkpoint is not None and site.checkpoint.kind:
        step = "release" if site.checkpoint.release else f"{site.checkpoint.iteration:,}"
        arguments = counted(len(site.checkpoint.arguments), "argument")
        told = local(f"checkpoint of iteration {step}: {site.checkpoint.kind}, {arguments}")
        yield plain(f"    {told}")
    if site.packages:
        packages = ", ".join(f"{one.name} {one.version}" for one in site.packages)
        yield plain(f"    {local(f'packages: {packages}')}")
    for draw in site.draws:
        if draw.samples is None:
            much = local(f"{draw.split}: {draw.length:,} samples of {draw.tokens:,} tokens, one pass")
        else:
            much = local(f"{draw.split}: {draw.samples:,} samples of {draw.tokens:,} tokens, {draw.epochs:,} epochs")
        yield plain(f"    {much}, {draw.name}")
