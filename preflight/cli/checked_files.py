"""Checks files for the text report: remembered reports are reused, the other files are checked in several processes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence

from preflight.checking.checker import Checker
from preflight.checking.discovery import Named
from preflight.checking.engine import Report
from preflight.cli import output
from preflight.cli.memo import Memo
from preflight.cli.session import counter
from preflight.cli.stream import refuse_gone
from preflight.report.terminal import Look
from preflight.report.text import tell
from preflight.report.totals import Told
from preflight.source.hints import TYPE_CHECKING, Any

if TYPE_CHECKING:  # one file needs no more process
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

CHUNK = 8
"""Items per process and batch: few enough that no process ends long before the others or waits for a reader."""


class Died(RuntimeError):
    """A worker process ended unexpectedly."""


def spread(work: Callable[[Any], Any], items: Sequence[Any], processes: int) -> Iterator[Any]:
    """The results of a function for each item, in order; function and items are inherited, so only results are sent."""
    chunks = [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]
    team: dict[Connection, BaseProcess] = {}
    try:
        for _ in range(min(processes, len(chunks))):
            _hire(team, work, chunks)
        yield from _results(team, len(chunks))
    finally:
        for pipe, process in team.items():
            pipe.close()
            process.kill()
            process.join()


def _hire(team: dict[Connection, BaseProcess], work: Callable[[Any], Any], chunks: Sequence[Sequence[Any]]) -> None:
    from multiprocessing import get_context

    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, [ours, *team], work, chunks), daemon=True)
    process.start()
    theirs.close()
    team[ours] = process


def _results(team: dict[Connection, BaseProcess], number: int) -> Iterator[Any]:
    """Hand out batches of the work to idle processes, and yield their results in order."""
    from multiprocessing.connection import wait

    left, due, done = iter(range(number)), 0, dict[int, list[Any]]()
    busy = [pipe for pipe in team if _give(pipe, left)]
    while due < number:
        ready = wait(busy)
        for pipe in [pipe for pipe in busy if pipe in ready]:
            try:
                index, results, error = pipe.recv()
            except (EOFError, OSError):
                raise Died("a process that checks files was ended from outside") from None
            if error is not None:
                raise error
            done[index] = results
            if not _give(pipe, left):
                busy.remove(pipe)
        while due in done:
            yield from done.pop(due)
            due += 1


def _give(pipe: Connection, left: Iterator[int]) -> bool:
    """Hand out the next batch, if there is one. The pipe of a dead process ends, which counts as its answer."""
    if (index := next(left, None)) is None:
        return False
    with contextlib.suppress(OSError):
        pipe.send(index)
    return True


def _serve(
    pipe: Connection, others: Sequence[Connection], work: Callable[[Any], Any], chunks: Sequence[Sequence[Any]]
) -> None:
    """The loop of a process: it ends when the other end of its pipe is closed, or when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers for all
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:  # only the parent holds them open
        other.close()
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(_answer(work, chunks, pipe.recv()))


def _answer(
    work: Callable[[Any], Any], chunks: Sequence[Sequence[Any]], index: int
) -> tuple[int, list[Any], Exception | None]:
    try:
        return index, [work(item) for item in chunks[index]], None
    except Exception as error:
        return index, [], error


FIRST = 8
"""The number of files above which worker processes are started."""
PAYS = 100
"""The number of files that justify one more process."""


class Teller:
    """Checks the files one after the other, and reports the findings."""

    def __init__(self, checker: Checker, look: Look, memo: Memo | None, *, lenient: bool) -> None:
        self.checker, self.look, self.memo, self.lenient = checker, look, memo, lenient

    def of(self, report: Report) -> Told:
        """The contents of a report."""
        return tell(report, self.look)._replace(problems=output.problems(report))

    def check(self, item: Named) -> Told:
        """Check a file, and remember its report."""
        report = self.checker.check_file(item, lenient=self.lenient)
        told = self.of(report)
        if self.memo is not None:
            self.memo.keep(item, told, report.looked)
        return told

    def tell(self, files: list[Named], jobs: int) -> Iterator[Told]:
        """The reports of files, in arbitrary order. jobs: number of worker processes, 0: automatic."""
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
        yield from map(self.check, files[:FIRST])  # what they load, the others inherit
        yield from spread(self.check, files[FIRST:], processes)


def _processes(files: int, jobs: int) -> int:
    """The number of processes for this many files."""
    if not hasattr(os, "fork") or sys.platform == "darwin":
        return 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(jobs or min(usable, files // PAYS), max(files, 1))
