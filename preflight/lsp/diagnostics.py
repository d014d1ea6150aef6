"""Findings as diagnostics."""

from __future__ import annotations

from lsprotocol import types

from preflight.checking.engine import Report
from preflight.lsp.buffers import Buffer
from preflight.lsp.places import position_of, range_of, uri_of
from preflight.lsp.rule_sections import address
from preflight.source.finding import Finding, Severity

SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


def diagnostics(buffer: Buffer) -> list[types.Diagnostic]:
    """What is found in a file, and why it cannot be read. Findings in other files are told at its start."""
    found = [diagnostic(finding, buffer) for finding in buffer.report.findings]
    return [*found, *_unreadable(buffer.report, buffer)]


def diagnostic(finding: Finding, buffer: Buffer) -> types.Diagnostic:
    """One finding, at its place, with the other places that take part."""
    own = finding.path == buffer.source.name
    where = "" if own else f"{finding.path}:{finding.line}: "
    related = [
        types.DiagnosticRelatedInformation(types.Location(uri, range_of(one.span)), one.label or "takes part")
        for one in finding.related
        if (uri := uri_of(one.span.source))
    ]
    return types.Diagnostic(
        range=range_of(finding.span) if own else types.Range(types.Position(0, 0), types.Position(0, 1)),
        message=f"{where}{finding.message}",
        severity=SEVERITIES[finding.severity or Severity.NOTE],
        code=finding.rule,
        code_description=types.CodeDescription(page) if (page := address(finding.rule or "")) else None,
        source="preflight",
        related_information=related or None,
    )


def _unreadable(report: Report, buffer: Buffer) -> list[types.Diagnostic]:
    found = []
    for error in report.errors:
        source = buffer.source
        line = min(max(error.line, 1), len(source.starts))
        start = min(source.offset(line) + max(error.column - 1, 0), len(source.text))
        at = position_of(source, start)
        place = types.Range(at, types.Position(at.line, at.character + 1))
        severity = types.DiagnosticSeverity.Error
        found.append(types.Diagnostic(range=place, message=error.message, severity=severity, source="preflight"))
    return found
