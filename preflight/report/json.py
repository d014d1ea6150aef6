"""The JSON report: "schema": 1, specified by schemas/report.json."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import preflight
from preflight.checking.engine import Report
from preflight.fix.edited_texts import text_edits
from preflight.job import Checkpoint, Job, Site
from preflight.loaders.document import Unknown
from preflight.report.framework_release import release_dict
from preflight.report.json_encoding import dumped
from preflight.report.source_excerpts_and_escapes import Look
from preflight.source.finding import Edit, Finding, Fix, Severity
from preflight.source.source_file import Span
from preflight.source.typing_without_import import Any

SCHEMA = 1


def render(report: Report, look: Look = Look()) -> str:
    """The whole report as JSON text."""
    return dumped(as_dict(report), default=_plain)


def as_dict(report: Report) -> dict[str, Any]:
    """The whole report as plain data."""
    return {
        "schema": SCHEMA,
        "version": preflight.__version__,
        "accepted": report.accepted,
        "fits": report.fits,
        "findings": [finding_dict(finding, report) for finding in report.findings],
        "runs": [run_dict(job) for job in report.jobs],
        "unknown": [{"rule": one.rule, "path": one.path, "because": one.because} for one in report.unknown],
        "checked": list(report.checked),
        "skipped": list(report.skipped),
        "suppressed": report.suppressed,
        "errors": [error._asdict() for error in report.errors],
        "crashes": [{"rule": crash.rule, "path": crash.path, "error": crash.error} for crash in report.crashes],
        "counts": {str(s): sum(f.severity is s for f in report.findings) for s in Severity},
    }


def finding_dict(finding: Finding, report: Report | None = None) -> dict[str, Any]:
    """One finding as plain data. report: its report, needed to locate fixes in the text."""
    return {
        "rule": finding.rule,
        "severity": str(finding.severity),
        "message": finding.message,
        **place(finding.span),
        "key": list(finding.key),
        "upstream": finding.upstream,
        "layout": finding.layout,
        "related": [{**place(related.span), "label": related.label} for related in finding.related],
        "fix": fix_dict(finding.fix, finding, report) if finding.fix else None,
        "alternatives": [fix_dict(fix, finding, report) for fix in finding.alternatives],
    }


def place(span: Span) -> dict[str, Any]:
    """A place: lines and columns from 1, columns in characters, end exclusive."""
    end = span.end_position
    return {"path": span.path, "line": span.line, "column": span.column, "end_line": end.line, "end_column": end.column}


def fix_dict(fix: Fix, finding: Finding, report: Report | None) -> dict[str, Any]:
    """A fix by meaning and, if its report is given, as text edits; no edits if it has no place."""
    edits = {"edits": [_edit(edit) for edit in fix.edits]}
    shown = {"title": fix.title, "safety": str(fix.safety), "change": str(fix.change), "offered": fix.offered, **edits}
    if fix.cost:
        shown["cost"] = fix.cost
    if report is None:
        return shown
    splices = (splice for part in text_edits(report, finding, fix).values() for splice in part)
    return {**shown, "text": [{**place(span), "new": new} for span, new in splices]}


def _edit(edit: Edit) -> dict[str, Any]:
    exact = (
        edit.value is None
        or isinstance(edit.value, (str, int, bool, list, tuple, dict))
        or (isinstance(edit.value, float) and isfinite(edit.value))
    )
    value = edit.value if exact else str(edit.value)
    found: dict[str, Any] = {"action": edit.action, "key": list(edit.key), "value": value}
    return {**found, "at": place(edit.span)} if edit.span is not None else found


def run_dict(job: Job) -> dict[str, Any]:
    """One run: framework, release and number of devices."""
    device = job.cluster.device
    return {
        "path": job.documents[0].source.name,
        "run": job.documents[0].run,
        "framework": job.target.framework,
        "version": job.target.version,
        "versions": dict(job.versions),
        "standing": _standing(job),
        "release": release_dict(job),
        "evidence": job.arguments.certainty.evidence or None,
        "program": job.program or None,
        "source": job.judged.outcome if job.judged is not None else None,
        "devices": job.cluster.count.raw if job.cluster.count.known else None,
        "device": device.name if device else None,
        **({"site": site_dict(job.site)} if job.site is not None else {}),
    }


def site_dict(site: Site) -> dict[str, Any]:
    """The results of `--site` as plain data."""
    return {
        "host": site.host,
        "opened": [one._asdict() for one in site.opened],
        "data": [{**one._asdict(), "parts": list(one.parts)} for one in site.data],
        "draws": [one._asdict() for one in site.draws],
        "checkpoint": _checkpoint(site.checkpoint) if site.checkpoint is not None else None,
        "paths": [one._asdict() for one in site.paths],
        "save": site.save._asdict() if site.save is not None else None,
        "packages": {one.name: one.version for one in site.packages},
        "nodes": [one._asdict() for one in site.nodes],
    }


def _checkpoint(found: Checkpoint) -> dict[str, Any]:
    """A checkpoint without the hundreds of arguments that it was saved with."""
    return {name: value for name, value in found._asdict().items() if name != "arguments"}


def _standing(job: Job) -> str | None:
    """The kind of evidence: the published framework, an altered one, or only a file that installs it; None without
    evidence."""
    certainty = job.arguments.certainty
    if not certainty.evidence:
        return None
    return "altered" if certainty.has is not None else "proven" if certainty.stated else "installed"


def _plain(value: object) -> object:
    if isinstance(value, Unknown):
        return None
    return dict(value) if isinstance(value, Mapping) else str(value)
