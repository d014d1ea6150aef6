"""The summary with which torchrun ends: which process failed first, and when."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from preflight.logs.prefixes import Written
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.logs.failures import Failure

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
        if ENDS.match(text):
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

    def attributed(self, found: Sequence[Failure], printed: Callable[[Failure], int]) -> tuple[Failure, ...]:
        """The failures, with those marked of the process that certainly failed first. If no line has a rank and there
        is only one exception that is not a consequence, it is that process's, or that of all processes that failed.
        printed: number of times that a failure is in the log."""
        roots = [one for one in self._exits if one.root and one.time and one.code > 0]
        root = min(roots, key=lambda one: one.time, default=None)
        if root is None:
            return tuple(found)
        together = {one.rank for one in self._exits if one.time <= root.time}
        own = [one for one in found if not one.aftermath]
        raised = [one for one in own if one.kind and one.whole and not one.passed and not one.repeated]
        sure = len(together) == 1
        alone = all(one.rank is None for one in own) and len(set(map(_first_line, raised))) == 1
        if alone and (sure or sum(map(printed, raised)) == len({one.rank for one in self._exits})):
            known = raised[0]._replace(rank=root.rank, leads=True)
            return tuple(known if one is raised[0] else one for one in found)
        leads = root.rank if sure else -1
        return tuple(one._replace(leads=True) if one.rank == leads and not one.aftermath else one for one in found)


def _first_line(one: Failure) -> tuple[str, str, str]:
    """The part of an exception that other processes, which write below it, do not change."""
    kind, message, place = one.alike
    return kind, message.partition("\n")[0], place
