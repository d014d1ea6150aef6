"""Suppressions in comments, and the former names of rules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import accumulate

from preflight.loaders.document import Document
from preflight.source.finding import Edit, Finding, Fix, Message, Safety, Severity
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span
from preflight.source.spelling import nearest

RENAMED = {
    "lost-companions": "lost-options",
    "class-argument": "class-argument-refused",
    "reset-silently": "replaced-by-trainer",
    "undefined-group": "undefined-option-variable",
    "unused-group": "unused-option-variable",
    "unused-size": "unused-size-variable",
}
"""Former name → present name. A name stays here as long as configs may use it."""


def present(name: str) -> str:
    """The present name of a rule."""
    return RENAMED.get(name, name)


def former(id: str) -> tuple[str, ...]:
    """The former names of a rule."""
    return tuple(old for old, new in RENAMED.items() if new == id)


def renamed_by(patterns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The former names matched by patterns of rule ids, each with the present one."""
    for pattern in patterns:
        if pattern in RENAMED:
            yield pattern, RENAMED[pattern]
        elif "*" in pattern:
            yield from ((old, new) for old, new in RENAMED.items() if fnmatchcase(old, pattern))


def with_present_names(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns with present names; a pattern with `*` is kept, and the present names of its other matches are
    added."""
    found = [name for pattern in patterns for name in (*_stays(pattern), *(new for _, new in renamed_by((pattern,))))]
    return tuple(dict.fromkeys(found))


def _stays(pattern: str) -> tuple[str, ...]:
    return () if pattern in RENAMED else (pattern,)


UNUSED = "unused-suppression"
_PATTERN = lazy_pattern(r"#\s*preflight:\s*ignore(?:\[([^\]]*)\])?\s*(.*)")


MOST_GUESSES = 50
"""The number of unknown ids that get a suggestion: finding one takes a millisecond."""


MOST_IDS = 200
"""The maximum number of ids in one comment."""


class Suppression(NamedTuple):
    """One comment: its ids, its reason, and the stretch of text that it covers."""

    ids: tuple[str, ...]
    reason: str
    span: Span
    covers: Span
    former: tuple[str, ...] = ()
    """Former rule names in the comment; `ids` has the present ones."""

    def removal(self) -> Fix:
        """Remove the comment, with its line if nothing else is on it."""
        source, start = self.span.source, self.span.start
        begin = source.starts[self.span.line - 1]
        before = source.text[begin:start]
        alone = not before.strip()
        end = (
            min(self.span.end + (2 if source.text.startswith("\r\n", self.span.end) else 1), len(source.text))
            if alone
            else self.span.end
        )
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
            ids = tuple(part.strip() for part in (match[1] or "").split(",") if part.strip())[:MOST_IDS]
            old = tuple(id for id in ids if present(id) != id)
            ids = tuple(dict.fromkeys(map(present, ids))) if old else ids
            found.append(Suppression(ids, match[2].strip(), comment.span, comment.covers, old))
    return tuple(found)


class _Index:
    """Comments by rule and source, ordered by their coverage, each with the furthest end so far: most findings meet one
    or two."""

    def __init__(self, comments: Sequence[Suppression]) -> None:
        self._found: dict[tuple[str, int], list[Suppression]] = {}
        for comment in sorted(comments, key=lambda comment: comment.covers.start):
            for id in dict.fromkeys(comment.ids):
                self._found.setdefault((id, _text(comment.covers)), []).append(comment)
        self._starts = {key: [c.covers.start for c in found] for key, found in self._found.items()}
        self._ends = {key: list(accumulate((c.covers.end for c in found), max)) for key, found in self._found.items()}

    def covering(self, finding: Finding) -> list[Suppression]:
        """The comments that hide a finding."""
        key, at = (finding.rule, _text(finding.span)), finding.span.start
        if (found := self._found.get(key)) is None:
            return []
        covering, index, ends = [], bisect_right(self._starts[key], at) - 1, self._ends[key]
        while index >= 0 and ends[index] > at:
            if at < found[index].covers.end:
                covering.append(found[index])
            index -= 1
        return covering


def _text(span: Span) -> int:
    return id(span.source)


def unsuppressed(
    findings: Sequence[Finding],
    comments: Sequence[Suppression],
    chosen: Callable[[str, str], bool],
    unsure: Set[tuple[str, str]],
    rules: Callable[[], Set[str]],
) -> list[Finding]:
    """The findings that no comment covers, and those about comments. chosen: whether a rule runs on a path; unsure:
    rules and paths where something could not be verified; rules: all known ids."""
    used: set[tuple[str, int, str]] = set()
    kept = []
    index = _Index(comments)
    for finding in findings:
        covering = index.covering(finding)
        used |= {(c.span.path, c.span.start, finding.rule) for c in covering}
        if not any(comment.reason for comment in covering):
            kept.append(finding)
    known = _Known(rules)
    for comment in comments:
        where = comment.span
        if chosen(UNUSED, where.path):
            unused = [
                id for id in comment.ids if (where.path, where.start, id) not in used and (id, where.path) not in unsure
            ]
            kept += _faults(comment, [id for id in unused if chosen(id, where.path)], known)
            kept += _renamed(comment)
    return kept


def _renamed(comment: Suppression) -> Iterator[Finding]:
    """A note for each former rule name, which still works."""
    for old in comment.former:
        message = Message("rule {old!r} is now named {name!r}; the former name still works", old=old, name=present(old))
        fix = comment.renaming(old, present(old))
        yield Finding(message, comment.span, fix=fix, rule=UNUSED, severity=Severity.NOTE)


class _Known:
    """The ids of all rules, looked up on demand, and the probable meaning of a wrong one."""

    def __init__(self, rules: Callable[[], Set[str]]) -> None:
        self._rules, self._left = rules, MOST_GUESSES

    @cached_property
    def ids(self) -> Set[str]:
        """All known ids."""
        return self._rules()

    @cached_property
    def _sorted(self) -> tuple[str, ...]:
        return tuple(sorted(self.ids))

    def nearest(self, id: str) -> str | None:
        """The intended id, for the first few unknown ones."""
        self._left -= 1
        return nearest(id, self._sorted) if self._left >= 0 else None


def _faults(comment: Suppression, unused: Sequence[str], known: _Known) -> Iterator[Finding]:
    """A suppression that names no rule, gives no reason, names a rule that does not exist, or hides nothing."""

    def fault(message: str, fix: Fix | None = None) -> Finding:
        return Finding(message, comment.span, fix=fix, rule=UNUSED, severity=Severity.WARNING)

    if not comment.ids:
        yield fault("a suppression must name its rules: # preflight: ignore[rule-id] reason")
    elif not comment.reason:
        yield fault("a suppression without a reason hides nothing; add a reason after the bracket")
    for id in unused:
        if id in known.ids:
            message = Message("unused suppression: rule {id!r} reports nothing here", id=id)
            yield fault(message, comment.removal() if len(comment.ids) == 1 else None)
        else:
            close = known.nearest(id)
            hint = Message("; did you mean {close!r}?", close=close) if close else ""
            message = Message("there is no rule {id!r}{hint}", id=id, hint=hint)
            yield fault(message, comment.renaming(id, close) if close else None)
