"""A self-contained HTML file: findings in context, memory per stage, and unverified facts."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from hashlib import sha256
from itertools import groupby

from jinja2 import Environment, PackageLoader

import preflight
from preflight.checking.engine import Report
from preflight.checking.localized_report import translated
from preflight.job import Job
from preflight.lint.rule import Checkable
from preflight.memory import Term
from preflight.report.framework_release import heading
from preflight.report.memory import between
from preflight.report.rule_pages import documented, rule_text, section_url
from preflight.report.run_overview import layers_per_stage, rows
from preflight.report.source_excerpts_and_escapes import Look, counted, plain
from preflight.source.finding import Finding, Severity
from preflight.source.record import NamedTuple
from preflight.source.translation import local, spoken
from preflight.source.typing_without_import import Any

GIB = 2**30
CONTEXT = 2
REACH = 400
"""Characters of a line shown on either side of a place."""
GROUPS = ("weights", "gradients", "optimizer", "activations", "buffers")
"""Groups of memory terms; each has one colour."""
_GROUP = {
    "weights": "weights",
    "gathered weights": "weights",
    "fp8 weight caches": "weights",
    "reference model": "weights",
    "gradients": "gradients",
    "deferred output gradients": "gradients",
    "optimizer states": "optimizer",
    "logits and loss": "activations",
    "activations of the prompt": "activations",
    "gathered inputs": "activations",
    "output layer's input": "activations",
    "projection of images": "activations",
    "embedding dropout mask": "activations",
    "log-probabilities and entropy": "activations",
}
MOST_PICTURES = 30
"""Runs whose memory is drawn, those nearest to the limit of their device first; the others have one line."""
FEW = 3
"""Runs whose overviews come before the findings; those of more runs follow them, folded."""
RULE_TEXT = 3000
"""Characters of a rule's page that are shown."""
LAYOUT = ("world", "data", "tensor", "pipeline", "virtual", "context", "expert", "expert_tensor", "sequence_parallel")


class Line(NamedTuple):
    """A line of source: its number, the text before, in and after the marked stretch."""

    number: int
    before: str
    marked: str
    after: str


class Bar(NamedTuple):
    """The memory of a pipeline stage: groups and terms as (name, GiB, share of the width), and the total in GiB."""

    stage: int
    groups: list[tuple[str, float, float]]
    terms: list[tuple[str, float, float]]
    need: str


def render(report: Report, look: Look = Look()) -> str:
    """The report as a page; every text is escaped by the template."""
    report = translated(report)
    environment = Environment(
        loader=PackageLoader("preflight", "report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    counts = {str(s): sum(f.severity is s for f in report.findings) for s in Severity}
    jobs = sorted((job for job in report.jobs if job.memory.worst is not None), key=_room)
    drawn, others = jobs[:MOST_PICTURES], jobs[MOST_PICTURES:]
    runs = [_run(job) for job in drawn]
    rules = [rule for rule in documented(report.rules) if any(f.rule == rule.id for f in report.findings)]
    script = environment.get_template("report_filter.html.j2").render()
    return environment.get_template("report.html.j2").render(
        script=script,
        script_hash=f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
        report=report,
        version=preflight.__version__,
        counts=counts,
        context=_context,
        plain=plain,
        counted=counted,
        files=[(path, list(found)) for path, found in groupby(report.findings, key=lambda finding: finding.path)],
        rules=rules,
        by_id={rule.id: rule for rule in rules},
        anchors={rule.id: rule.id.replace("/", "-") for rule in rules},
        text=_rule_text,
        runs=runs,
        verdict=_title(report, counts),
        date=_date(),
        overviews=[_overview(job) for job in _rejected_first(report)[:MOST_PICTURES]],
        unshown=max(0, len(report.jobs) - MOST_PICTURES),
        few=FEW,
        why=_why,
        groups=GROUPS,
        group=group_of,
        others=[(job.documents[0].source.name, between(*job.memory.span), _verdict(job)) for job in others],
        page=section_url,
        language=spoken().language,
        _=local,
    )


def group_of(name: str) -> str:
    """The group of a term of memory."""
    if name in _GROUP:
        return _GROUP[name]
    return "activations" if name.startswith("activations") or "mask" in name or "cache" in name else "buffers"


def _title(report: Report, counts: dict[str, int]) -> str:
    """The verdict in one line."""
    if report.errors:
        return local(f"Not checked: {counted(len(report.errors), 'file')} cannot be read")
    if counts["error"]:
        return local(f"Rejected: {counted(counts['error'], 'error')}")
    if any(job.memory.verdict == "does-not-fit" and not job.withheld for job in report.jobs):
        return local("Does not fit in memory")
    rest = ", ".join(counted(number, name) for name, number in counts.items() if number)
    return local(f"No errors: {rest}" if rest else "No problems found")


def _date() -> str:
    """The date of the report; SOURCE_DATE_EPOCH overrides it for reproducible builds."""
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(stated), timezone.utc) if stated.isdecimal() else datetime.now(timezone.utc)
    return moment.date().isoformat()


def _rejected_first(report: Report) -> list[Job]:
    """The runs, those of files with errors first."""
    rejected = {finding.path for finding in report.findings if finding.severity is Severity.ERROR}
    return sorted(report.jobs, key=lambda job: job.documents[0].source.name not in rejected)


def _overview(job: Job) -> dict[str, Any]:
    """A run as in `preflight show`: its framework and release with evidence, then rows of label and text."""
    shown = [(plain(label), plain(text)) for label, text in rows(job)]
    return {"path": job.documents[0].source.name, "target": heading(job), "rows": shown}


def _why(rule: Checkable) -> str:
    """The section "Why is this bad?" of a rule's page; "" if there is none."""
    _, _, rest = rule_text(rule).partition("## Why is this bad?\n")
    return "\n".join(map(plain, rest.partition("\n## ")[0].strip()[:RULE_TEXT].splitlines()))


def _need(job: Job) -> float:
    """The bytes required by the fullest stage of a run."""
    return job.memory.worst.required if job.memory.worst is not None else 0.0


def _verdict(job: Job) -> str:
    return "no verdict" if job.withheld else job.memory.verdict


def _room(job: Job) -> float:
    """The fraction of device memory that a run leaves free; 1 if the device is unknown."""
    return 1 - _need(job) / job.memory.budget if job.memory.budget else 1.0


def _rule_text(rule: Checkable) -> str:
    """The page of a rule without its first line."""
    return "\n".join(map(plain, rule_text(rule).partition("\n")[2].strip()[:RULE_TEXT].splitlines()))


def _context(finding: Finding) -> Iterator[Line]:
    """The lines around a finding; the first line of its place is marked."""
    source, start, end = (
        finding.span.source,
        finding.span.source.position(finding.span.start),
        finding.span.end_position,
    )
    for number in range(max(1, start.line - CONTEXT), min(len(source.starts), start.line + CONTEXT) + 1):
        text = source.line(number)
        if number != start.line:
            yield Line(number, plain(text[:REACH]), "", "")
            continue
        stop = end.column - 1 if end.line == start.line else len(text)
        at = start.column - 1
        yield Line(
            number,
            plain(text[max(0, at - REACH) : at]),
            plain(text[at : min(stop, at + REACH)]),
            plain(text[stop : stop + REACH]),
        )


def _run(job: Job) -> dict[str, Any]:
    """The pipeline and the memory bars of a run that has an estimate."""
    estimate = job.memory
    width = max(estimate.budget or 0.0, *(stage.required for stage in estimate.stages))
    bars = [
        Bar(one.index, _grouped(one.terms, width), _shares(one.terms, width), between(one.low, one.required))
        for one in estimate.stages
    ]
    names = list(dict.fromkeys(name for bar in bars for name, _, _ in bar.terms))
    return {
        "path": job.documents[0].source.name,
        "target": str(job.target),
        "verdict": "" if job.withheld else estimate.verdict,
        "withheld": job.withheld,
        "bars": bars,
        "pipeline": layers_per_stage(job),
        "rows": [
            (name, [next((size for other, size, _ in bar.terms if other == name), None) for bar in bars])
            for name in names
        ],
        "budget": estimate.budget / GIB if estimate.budget else None,
        "limit": 100 * estimate.budget / width if estimate.budget and not job.withheld else None,
        "layout": [
            (name, value.raw)
            for name, value in job.plan.values().items()
            if name.startswith("layout.") and name[7:] in LAYOUT and value.known and value.raw is not None
        ],
    }


def _grouped(terms: Iterable[Term], width: float) -> list[tuple[str, float, float]]:
    """The groups of terms in order: name, GiB, share of the width in percent."""
    sizes = dict.fromkeys(GROUPS, 0.0)
    for term in terms:
        sizes[group_of(term.name)] += term.high
    return [(name, size / GIB, 100 * size / width) for name, size in sizes.items() if size]


def _shares(terms: Iterable[Term], width: float) -> list[tuple[str, float, float]]:
    """The visible terms, largest first: name, GiB, share of the width in percent."""
    shown = [term for term in terms if term.high > 0.002 * width]
    return [
        (term.name, term.high / GIB, 100 * term.high / width) for term in sorted(shown, key=lambda term: -term.high)
    ]
