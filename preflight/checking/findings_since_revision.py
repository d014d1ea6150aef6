"""What changed against a git revision: findings on touched lines, and findings that were not there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path

from preflight.checking.configured_checker import Checker
from preflight.checking.engine import Report
from preflight.source.finding import Finding
from preflight.source.source_file import InputError, Source
from preflight.source.untrusted_repository import Repository

MOST_PAIRS = 1_000_000
"""If comparing the lines of two states takes more steps, all lines between the first and the last change count as
new."""


class Changes:
    """A revision to compare with. Raises InputError if git does not know it, or there is no git."""

    def __init__(self, revision: str, checker: Checker) -> None:
        self.checker = checker
        self.repository = Repository(Path.cwd())
        self.commit = self.repository.commit(revision)
        self._before = cache(self._read)
        self._found = cache(self._check)

    def only(self, report: Report) -> Report:
        """The report with only the findings that the change affects or introduces."""
        kept = tuple(finding for finding in report.findings if self.brought(finding))
        return replace(report, findings=kept, suppressed=report.suppressed + len(report.findings) - len(kept))

    def brought(self, finding: Finding) -> bool:
        """Whether a line that a finding refers to is new, or the finding itself is: a change elsewhere may cause it."""
        spans = (finding.span, *(related.span for related in finding.related))
        touched = any(
            _touched(before.text, span.source.text, span.line)
            for span in spans
            if (before := self._before(span.path)) is not None
        )
        before = self._before(finding.path)
        return touched or before is None or _identity(finding) not in self._found(before)

    def _check(self, before: Source) -> frozenset[tuple[object, ...]]:
        return frozenset(_identity(finding) for finding in self.checker.check_source(before, asked=False).findings)

    def _read(self, name: str) -> Source | None:
        """A file as it was; None when it was not there, or is not in the repository."""
        path = Path(name)
        data = self.repository.file(self.commit, path)
        try:
            return Source.decode(data, name, path=path) if data is not None else None
        except InputError:
            return None


def _identity(finding: Finding) -> tuple[object, ...]:
    return (finding.rule, finding.key, finding.message)


@lru_cache(maxsize=64)
def _new_lines(before: str, after: str) -> frozenset[int]:
    old, new = before.splitlines(), after.splitlines()
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    ours, theirs = old[head : len(old) - tail], new[head : len(new) - tail]
    if _pairs(ours, theirs) > MOST_PAIRS:
        return frozenset(range(head + 1, head + len(theirs) + 1))
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    changed: Iterable[range] = (range(start + 1, end + 1) for tag, _, _, start, end in blocks if tag != "equal")
    return frozenset(head + line for lines in changed for line in lines)


def _alike(before: Sequence[str], after: Sequence[str]) -> int:
    """The number of equal lines at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def _pairs(before: Sequence[str], after: Sequence[str]) -> int:
    """The number of pairs of equal lines, which determines how long a comparison takes."""
    counts = Counter(before)
    return sum(counts[line] for line in after)


def _touched(before: str, after: str, line: int) -> bool:
    return line in _new_lines(before, after)
