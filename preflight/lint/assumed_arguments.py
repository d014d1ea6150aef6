"""Errors of a launch to which whoever starts it may add options: what an added option may cure is no error."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.lint.certainty import lowered
from preflight.lint.refusing_releases import without_safe_fixes
from preflight.loaders.document import Document
from preflight.source.finding import Finding, Kind, Severity
from preflight.source.message import Message
from preflight.source.record import replace


def with_open_options(document: Document) -> Document:
    """The launch as one to which any option may be added."""
    assert document.launch is not None
    return replace(document, launch=document.launch._replace(open=True))


def lower_what_options_may_cure(found: Sequence[Finding], open_: Sequence[Finding], name: str) -> list[Finding]:
    """What was found; an error that is none where options may be added is a warning, a missing option a note.

    open_: what is found where options may be added. name: of what may add them.
    """
    certain = {(f.rule, f.path, f.span.start) for f in open_ if f.severity is Severity.ERROR}
    because = Message("{name} may add options that change this", name=name)

    def judged(finding: Finding) -> Finding:
        if finding.severity is not Severity.ERROR or (finding.rule, finding.path, finding.span.start) in certain:
            return finding
        made = without_safe_fixes(lowered(finding, because))
        return replace(made, severity=Severity.NOTE) if finding.kind is Kind.ABSENCE else made

    return [judged(finding) for finding in found]
