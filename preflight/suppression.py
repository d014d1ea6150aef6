"""`# preflight: ignore[rule-id] reason` on the line of a finding or the line above."""

from __future__ import annotations

import re

from preflight.document import Document
from preflight.finding import Edit, Fix, Safety
from preflight.record import NamedTuple
from preflight.source import Span

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
