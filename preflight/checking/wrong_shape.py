"""A file that somebody names, and that has not the shape that it should have: a config that is empty or a list, a
script that bash refuses."""

from __future__ import annotations

from preflight.checking.engine import Report
from preflight.checking.workspace import Workspace
from preflight.dialects import claim
from preflight.loaders import is_script, load
from preflight.plugins.manager import Plugins
from preflight.run.request import Request
from preflight.source.finding import Finding, Related, Severity
from preflight.source.record import replace
from preflight.source.text import Source


def with_refused_script(report: Report, source: Source, workspace: Workspace, *, asked: bool) -> Report:
    """The report of a file without a run; where it is a script that bash refuses, with the place at which bash stops.

    asked: somebody names the file; else a run has to be in what bash never reads.
    """
    if not is_script(source):
        return report
    from preflight.loaders.shell import load_script
    from preflight.loaders.shell.refusal import refusal

    refused = refusal(source)
    if refused is None:
        return report
    dialects, request = workspace.plugins.dialects, workspace.request
    if not asked and not any(claim(one, dialects, request) for one in load_script(source, whole=True)):
        return report
    problem = refused.problem(source)
    related = tuple(Related(span) for span in problem.related)
    finding = Finding(problem.message, problem.span, related, rule=problem.kind, severity=Severity.ERROR)
    found = (finding,) if workspace.policy.wants(finding) else ()
    return replace(report, findings=found, skipped=(), checked=(source.name,))


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
