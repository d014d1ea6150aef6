"""SARIF 2.1.0, for GitHub code scanning and other dashboards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import quote

import preflight
from preflight.checking.engine import Report
from preflight.checking.file_failures import crash_line
from preflight.checking.unused_suppression import unused_suppression
from preflight.fix.edited_texts import text_edits
from preflight.lint.rule import Checkable
from preflight.lint.suppression import former
from preflight.report.documentation_urls import home
from preflight.report.fingerprint import fingerprints
from preflight.report.json_encoding import dumped
from preflight.report.rule_pages import rule_text, section_url
from preflight.report.source_excerpts_and_escapes import Look, plain
from preflight.source.finding import Finding, Fix, Severity
from preflight.source.source_file import Span
from preflight.source.typing_without_import import Any

Part = dict[str, Any]
"""An object of the SARIF standard, with its property names."""
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def render(report: Report, look: Look = Look()) -> str:
    """The report as a SARIF log with one run."""
    named = [
        *report.rules,
        *([unused_suppression] if any(f.rule == unused_suppression.id for f in report.findings) else []),
    ]
    rules = {rule.id: index for index, rule in enumerate(named)}
    failures = [_failure(str(error)) for error in report.errors]
    failures += [_failure(crash_line(crash)) for crash in report.crashes]
    run = {
        "results": [_result(report, finding, print_, rules) for finding, print_ in fingerprints(report.findings)],
        "tool": {"driver": _driver(named)},
        "columnKind": "unicodeCodePoints",
        "invocations": [_set(executionSuccessful=not failures, toolExecutionNotifications=failures)],
        "newlineSequences": ["\r\n", "\n"],
    }
    return dumped({"runs": [run], "version": "2.1.0", "$schema": SCHEMA})


def _set(**properties: Any) -> Part:
    """The properties that have a value."""
    return {name: value for name, value in properties.items() if value not in (None, [])}


def _driver(named: Sequence[Checkable]) -> Part:
    return _set(
        name="preflight",
        contents=["localizedData", "nonLocalizedData"],
        informationUri=home(),
        rules=[_rule(rule) for rule in named],
        semanticVersion=preflight.__version__,
        version=preflight.__version__,
    )


def _failure(text: str) -> Part:
    return {"message": {"text": plain(text)}, "level": "error"}


def _rule(rule: Checkable) -> Part:
    text = rule_text(rule)
    first, _, rest = text.partition("\n")
    return _set(
        id=rule.id,
        deprecatedIds=list(former(rule.id)) or None,
        defaultConfiguration={"level": LEVELS[rule.severity]},
        fullDescription={"text": _sentence(first)},
        help={"text": text, "markdown": f"# {rule.id}\n\n{first}\n{rest}"},
        helpUri=section_url(rule.id),
        name="".join(part.capitalize() for part in rule.id.replace("/", "-").split("-")),
        shortDescription={"text": _sentence(first)},
    )


def _sentence(text: str) -> str:
    """A message as a sentence; a leading name such as learning_rate keeps its case."""
    text = text.strip()
    start = text[:1].upper() if text.partition(" ")[0].isalpha() else text[:1]
    return start + text[1:] + ("" if text.endswith(".") else ".")


def _result(report: Report, finding: Finding, print_: str, rules: dict[str, int]) -> Part:
    assert finding.severity is not None
    fixes = [_fix(report, finding, fix) for fix in (finding.fix, *finding.alternatives) if fix is not None]
    return _set(
        message=_text(finding.message),
        fixes=[fix for fix in fixes if fix is not None],
        level=LEVELS[finding.severity],
        locations=[{"physicalLocation": _place(finding.span)}],
        partialFingerprints={"preflight/v1": print_},
        relatedLocations=[
            {"id": i, "message": _text(r.label or "involved"), "physicalLocation": _place(r.span)}
            for i, r in enumerate(finding.related, 1)
        ],
        ruleId=finding.rule,
        ruleIndex=rules.get(finding.rule, -1),
    )


def _text(text: str) -> Part:
    return {"text": _sentence(plain(text))}


def _place(span: Span) -> Part:
    return {"artifactLocation": {"uri": uri(span.path)}, "region": _region(span)}


def _region(span: Span) -> Part:
    end = span.end_position
    return {
        "endColumn": max(end.column, 1),
        "endLine": end.line,
        "startColumn": span.column,
        "startLine": span.line,
    }


def uri(path: str) -> str:
    """A path as a relative reference, or as a file URI if it is absolute."""
    pure = PurePath(path)
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix(), errors="surrogateescape")


def _fix(report: Report, finding: Finding, fix: Fix) -> Part | None:
    edits = text_edits(report, finding, fix)
    if not edits:
        return None
    changes = [
        {
            "artifactLocation": {"uri": uri(path)},
            "replacements": [
                {"deletedRegion": _region(span), "insertedContent": {"text": text}} for span, text in splices
            ],
        }
        for path, splices in edits.items()
    ]
    return {"artifactChanges": changes, "description": _text(fix.title)}
