"""SARIF 2.1.0, for GitHub code scanning and other dashboards."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import attr
import sarif_om as sarif  # type: ignore[import-untyped]

import preflight
from preflight.checking.engine import Report
from preflight.checking.failure import crash_line
from preflight.fix.apply import text_edits
from preflight.lint.rule import Checkable
from preflight.report.distribution import home
from preflight.report.dump import dumped
from preflight.report.escapes import plain
from preflight.report.fingerprint import fingerprints
from preflight.report.page import rule_text
from preflight.report.style import Look
from preflight.report.topics import section_url
from preflight.report.unused_suppression import unused_suppression
from preflight.source.finding import Finding, Fix, Severity
from preflight.source.text import Span

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def render(report: Report, look: Look = Look()) -> str:
    """The report as a SARIF log with one run."""
    named = [
        *report.rules,
        *([unused_suppression] if any(f.rule == unused_suppression.id for f in report.findings) else []),
    ]
    rules = {rule.id: index for index, rule in enumerate(named)}
    results = [_result(report, finding, print_, rules) for finding, print_ in fingerprints(report.findings)]
    driver = sarif.ToolComponent(
        name="preflight",
        version=preflight.__version__,
        semantic_version=preflight.__version__,
        information_uri=home(),
        rules=[_rule(rule) for rule in named],
    )
    failures = [_failure(str(error)) for error in report.errors]
    failures += [_failure(crash_line(crash)) for crash in report.crashes]
    invocation = sarif.Invocation(execution_successful=not failures, tool_execution_notifications=failures or None)
    run = sarif.Run(
        tool=sarif.Tool(driver=driver), results=results, invocations=[invocation], column_kind="unicodeCodePoints"
    )
    return dumped(_plain(sarif.SarifLog(version="2.1.0", schema_uri=SCHEMA, runs=[run])))


def _failure(text: str) -> Any:
    return sarif.Notification(message=sarif.Message(text=plain(text)), level="error")


def _rule(rule: Checkable) -> Any:
    text = rule_text(rule)
    first, _, rest = text.partition("\n")
    return sarif.ReportingDescriptor(
        id=rule.id,
        name="".join(part.capitalize() for part in rule.id.replace("/", "-").split("-")),
        short_description=sarif.MultiformatMessageString(text=_sentence(first)),
        full_description=sarif.MultiformatMessageString(text=_sentence(first)),
        help=sarif.MultiformatMessageString(text=text, markdown=f"# {rule.id}\n\n{first}\n{rest}"),
        help_uri=section_url(rule.id),
        default_configuration=sarif.ReportingConfiguration(level=LEVELS[rule.severity]),
    )


def _sentence(text: str) -> str:
    """A message as a sentence; a name such as learning_rate in front stays as it is written."""
    text = text.strip()
    start = text[:1].upper() if text.partition(" ")[0].isalpha() else text[:1]
    return start + text[1:] + ("" if text.endswith(".") else ".")


def _result(report: Report, finding: Finding, print_: str, rules: dict[str, int]) -> Any:
    assert finding.severity is not None
    related = [
        sarif.Location(id=i, physical_location=_place(r.span), message=_text(r.label or "takes part"))
        for i, r in enumerate(finding.related, 1)
    ]
    fixes = [_fix(report, finding, fix) for fix in (finding.fix, *finding.alternatives) if fix is not None]
    return sarif.Result(
        rule_id=finding.rule,
        rule_index=rules.get(finding.rule, -1),
        level=LEVELS[finding.severity],
        message=_text(finding.message),
        locations=[sarif.Location(physical_location=_place(finding.span))],
        related_locations=related or None,
        partial_fingerprints={"preflight/v1": print_},
        fixes=[fix for fix in fixes if fix is not None] or None,
    )


def _text(text: str) -> Any:
    return sarif.Message(text=_sentence(plain(text)))


def _place(span: Span) -> Any:
    return sarif.PhysicalLocation(artifact_location=sarif.ArtifactLocation(uri=uri(span.path)), region=_region(span))


def _region(span: Span) -> Any:
    end = span.end_position
    return sarif.Region(
        start_line=span.line, start_column=span.column, end_line=end.line, end_column=max(end.column, 1)
    )


def uri(path: str) -> str:
    """A path as a relative reference, or as a file URI when it is absolute."""
    pure = PurePath(path)
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix(), errors="surrogateescape")


def _fix(report: Report, finding: Finding, fix: Fix) -> Any:
    edits = text_edits(report, finding, fix)
    if not edits:
        return None
    changes = []
    for path, splices in edits.items():
        replacements = [
            sarif.Replacement(deleted_region=_region(span), inserted_content=sarif.ArtifactContent(text=text))
            for span, text in splices
        ]
        changes.append(
            sarif.ArtifactChange(artifact_location=sarif.ArtifactLocation(uri=uri(path)), replacements=replacements)
        )
    return sarif.Fix(description=_text(fix.title), artifact_changes=changes)


def _plain(value: Any) -> Any:
    """A sarif-om object as plain data under the names of the standard; what is unset or a default stays out."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if not attr.has(type(value)):
        return value
    found = {}
    for field in attr.fields(type(value)):
        item = getattr(value, field.name)
        required = field.default is attr.NOTHING or field.name in ("level", "rule_index", "results", "column_kind")
        if item is not None and (required or item != field.default) and item != []:
            found[field.metadata["schema_property_name"]] = _plain(item)
    return found if type(value).__name__ != "Run" else {"results": [], **found}
