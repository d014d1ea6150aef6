"""A file that somebody names as a config, and that has not the shape of one: empty, or a list."""

from __future__ import annotations

from preflight.checking.engine import Report
from preflight.loaders import load
from preflight.plugins.manager import Plugins
from preflight.run.request import Request
from preflight.source.finding import Finding, Severity
from preflight.source.record import replace
from preflight.source.text import Source


def with_refused_shape(report: Report, source: Source, plugins: Plugins, request: Request) -> Report:
    """The report of a named file; where no dialect claims it and its target's framework refuses such a file,
    with that error."""
    named_yaml = source.path is not None and source.path.suffix in (".yaml", ".yml")
    if report.skipped != (source.name,) or request.target is None or not named_yaml:
        return report
    for dialect in plugins.dialects:
        refuses = getattr(dialect, "refuses_shape", None)
        for place in filter(None, (refuses(document, request.target) for document in load(source))) if refuses else ():
            message = "the file is no mapping of sections, so there is no config in it"
            finding = Finding(message, source.span(0), rule="unreadable", severity=Severity.ERROR, upstream=place)
            return replace(report, findings=(finding,), skipped=(), checked=(source.name,))
    return report
