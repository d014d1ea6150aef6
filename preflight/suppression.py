"""`# preflight: ignore[rule-id] reason` on the line of a finding or the line above."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set

from preflight.document import Document
from preflight.finding import Edit, Finding, Fix, Safety, Severity
from preflight.record import NamedTuple
from preflight.source import Span
from preflight.spelling import did_you_mean, nearest

UNUSED = "unused-suppression"
_PATTERN = re.compile(r"#\s*preflight:\s*ignore(?:\[([^\]]*)\])?\s*(.*)")


class Suppression(NamedTuple):
    """One comment: the ids it names, the reason it gives, the stretch of text it covers."""

    ids: tuple[str, ...]
    reason: str
    span: Span
    covers: Span

    def covers_finding(self, rule: str, span: Span) -> bool:
        here = span.source is self.covers.source and self.covers.start <= span.start < self.covers.end
        return here and rule in self.ids

    def removal(self) -> Fix:
        """Take the comment away, with its line where it stands alone."""
        source, start = self.span.source, self.span.start
        begin = source.starts[self.span.line - 1]
        before = source.text[begin:start]
        alone = not before.strip()
        end = min(self.span.end + (2 if source.text.startswith("\r\n", self.span.end) else 1), len(source.text)) if alone else self.span.end
        gap = Span(source, begin if alone else begin + len(before.rstrip()), end)
        return Fix("remove the suppression", (Edit("splice", (), "", gap),), Safety.SAFE)

    def renaming(self, id: str, name: str) -> Fix:
        """Write another id."""
        text = self.span.text.replace(id, name, 1)
        return Fix(f"write {name}", (Edit("splice", (), text, self.span),), Safety.SAFE)


def suppressions(document: Document) -> tuple[Suppression, ...]:
    """Every suppression comment of a document; one without ids covers nothing."""
    found = []
    for comment in document.comments:
        if match := _PATTERN.search(comment.span.text):
            ids = tuple(part.strip() for part in (match[1] or "").split(",") if part.strip())
            found.append(Suppression(ids, match[2].strip(), comment.span, comment.covers))
    return tuple(found)


def unsuppressed(
    findings: Sequence[Finding],
    comments: Sequence[Suppression],
    chosen: Callable[[str, str], bool],
    unsure: Set[tuple[str, str]],
    rules: Callable[[], Set[str]],
) -> list[Finding]:
    """The findings that no comment covers, and those about comments. chosen: whether a rule runs on a path; unsure: rules and paths
    where something could not be verified; rules: every id there is."""
    used: set[tuple[str, int, str]] = set()
    kept = []
    for finding in findings:
        covering = [c for c in comments if c.covers_finding(finding.rule, finding.span)]
        used |= {(c.span.path, c.span.start, finding.rule) for c in covering}
        if not covering:
            kept.append(finding)
    for comment in comments:
        where = comment.span
        if chosen(UNUSED, where.path):
            unused = [id for id in comment.ids if (where.path, where.start, id) not in used and (id, where.path) not in unsure]
            kept += _faults(comment, [id for id in unused if chosen(id, where.path)], rules)
    return kept


def _faults(comment: Suppression, unused: Sequence[str], rules: Callable[[], Set[str]]) -> Iterator[Finding]:
    """A suppression that names no rule, gives no reason, names a rule that does not exist, or hides nothing."""

    def fault(message: str, fix: Fix | None = None) -> Finding:
        return Finding(message, comment.span, fix=fix, rule=UNUSED, severity=Severity.WARNING)

    if not comment.ids:
        yield fault("a suppression names its rules: # preflight: ignore[rule-id] reason")
    elif not comment.reason:
        yield fault("a suppression gives its reason after the bracket")
    known = rules() if unused else set()
    for id in unused:
        if id in known:
            yield fault(f"nothing here is found by {id!r}; the suppression is not needed", comment.removal() if len(comment.ids) == 1 else None)
        else:
            close = nearest(id, known)
            yield fault(f"there is no rule {id!r}{did_you_mean(id, known)}", comment.renaming(id, close) if close else None)
