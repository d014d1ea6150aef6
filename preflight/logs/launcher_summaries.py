"""The summary with which torchrun ends: which process failed first, and when."""

from __future__ import annotations

import re

from preflight.logs.prefixes import Written
from preflight.source.record import NamedTuple

SECTION = re.compile(r"^\s*(?:Root Cause\b|(?:Other )?Failures:)")
"""The start of a part of a summary."""
ENTRY = re.compile(r"^\s*\[\d+\]:\s*$")
ENDS = re.compile(r"^\s*[=*-]{20}")
TIME = re.compile(r"^\s*time {0,8}: (\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)\s*$")
RANK = re.compile(r"^\s*rank {0,8}: (\d{1,7}) \(local_rank: \d+\)\s*$")
CODE = re.compile(r"^\s*exitcode {0,8}: (-?\d+) \(pid: ")


class Exit(NamedTuple):
    """A process in a summary. root: it is the one that torchrun calls the root cause."""

    rank: int
    time: str
    code: int
    root: bool


class First(NamedTuple):
    """The process that failed first. sure: no other one ended in the same second. failed: number of processes that
    failed."""

    rank: int
    sure: bool
    failed: int


class _Part:
    """The position in the summary of one writer. root: in the part about the root cause."""

    def __init__(self, root: bool) -> None:
        self.root, self.time, self.rank = root, "", -1


class LauncherSummaries:
    """Reads the lines of logs one after the other."""

    def __init__(self) -> None:
        self._parts: dict[str, _Part] = {}
        self._exits: list[Exit] = []

    def rank(self, written: Written) -> int | None:
        """The rank of the process to whose entry a line belongs; None outside of entries."""
        text = written.text
        if section := SECTION.match(text):
            self._parts[written.by] = _Part("Root" in section[0])
            return None
        within = self._parts.get(written.by)
        if within is None:
            return None
        if ENDS.match(text) or (text[:1].strip() and not ENTRY.match(text)):  # an entry is indented
            del self._parts[written.by]
            return None
        if ENTRY.match(text):
            within.rank, within.time = -1, ""
        elif found := TIME.match(text):
            within.time = found[1]
        elif found := RANK.match(text):
            within.rank = int(found[1])
        elif (found := CODE.match(text)) and within.rank >= 0:
            self._exits.append(Exit(within.rank, within.time, int(found[1]), within.root))
        return within.rank if within.rank >= 0 else None

    def first(self) -> First | None:
        """The process that failed first, according to the earliest summary; None without a summary."""
        roots = [one for one in self._exits if one.root and one.time and one.code > 0]
        root = min(roots, key=lambda one: one.time, default=None)
        if root is None:
            return None
        together = {one.rank for one in self._exits if one.time <= root.time}
        return First(root.rank, len(together) == 1, len({one.rank for one in self._exits}))
