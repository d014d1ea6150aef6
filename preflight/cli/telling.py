"""Checks files for the text report: what is remembered is taken, the rest is checked,
by several processes where that pays."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from preflight.checking.checker import Checker
from preflight.checking.discovery import Named
from preflight.checking.engine import Report
from preflight.cli import output
from preflight.cli.memo import Memo
from preflight.cli.session import counter
from preflight.cli.stream import refuse_gone
from preflight.report.style import Look
from preflight.report.text import tell
from preflight.report.totals import Told

PAYS = 100
"""So many files are worth a process of their own."""


class Teller:
    """Checks one file after the other, and tells what was found."""

    def __init__(self, checker: Checker, look: Look, memo: Memo | None, *, lenient: bool) -> None:
        self.checker, self.look, self.memo, self.lenient = checker, look, memo, lenient

    def of(self, report: Report) -> Told:
        """What a report says."""
        return tell(report, self.look)._replace(problems=output.problems(report))

    def check(self, item: Named) -> Told:
        """Check a file, and remember what is told of it."""
        report = self.checker.check_file(item, lenient=self.lenient)
        told = self.of(report)
        if self.memo is not None:
            self.memo.keep(item, told, report.looked)
        return told

    def tell(self, files: list[Named], jobs: int) -> Iterator[Told]:
        """What is told of files, in no order. jobs: how many processes may work, 0 for as many as pay."""
        done, left = 0, []
        for item in files:
            told = self.memo.recall(item) if self.memo is not None else None
            if told is None:
                left.append(item)
            else:
                done += 1
                yield told
        progress = counter(len(files), sys.stderr)
        for number, told in enumerate(self._checked(left, _processes(len(left), jobs)), done + 1):
            progress(number)
            refuse_gone()
            yield told
        progress(0)
        if left and self.memo is not None:
            self.memo.sweep()

    def _checked(self, files: list[Named], processes: int) -> Iterator[Told]:
        if processes < 2:
            yield from map(self.check, files)
            return
        yield self.check(files[0])  # what it loads, the others inherit
        from preflight.cli.processes import spread

        yield from spread(self.check, files[1:], processes)


def _processes(files: int, jobs: int) -> int:
    """How many processes are to check so many files."""
    if not hasattr(os, "fork") or sys.platform == "darwin":
        return 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(jobs or min(usable, files // PAYS), max(files, 1))
