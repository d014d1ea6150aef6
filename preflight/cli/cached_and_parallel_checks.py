"""Checking files, and remembering their reports."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from stat import S_ISDIR

from preflight import __version__
from preflight.checking.configured_checker import Checker
from preflight.checking.discovery import Named
from preflight.checking.engine import Report
from preflight.cli import output
from preflight.cli.checker_setup import counter
from preflight.cli.exit_handling import refuse_gone
from preflight.lint import rule_registry
from preflight.program.checkout.framework_discovery import listed
from preflight.report.source_excerpts_and_escapes import Look, obeyed
from preflight.report.text import tell
from preflight.report.text_summary import Entry, Told
from preflight.run.project_settings import Settings
from preflight.source import cache_folder
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.translation import spoken
from preflight.source.typing_without_import import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess


VARIABLE = "PREFLIGHT_NO_CACHE"
FOLDER = "told"
_COLOR = lazy_pattern(r"\x1b\[[0-9;]*m")
_PARTS = ("st_mtime_ns", "st_ctime_ns", "st_size", "st_ino", "st_dev", "st_mode")
FRESH = 100_000_000  # ns; a more recent file may change again without a change of its time

WRITTEN_BY_RUNS = (
    *(".log", ".out", ".err", ".pid", ".lock", ".tmp", ".swp", "~", ".pyc"),
    *(".pt", ".bin", ".idx", ".ckpt", ".safetensors", ".npy", ".csv", ".jsonl", ".png"),
)
"""File endings that no check looks for: jobs write such files next to their config while they run."""


class Memo:
    """The key contains every input of a call except its files."""

    def __init__(self, key: str, checker: Checker) -> None:
        self._key, self._checker = cache_folder.digest(key), checker
        self._now = time.time_ns()
        self._folders: dict[str, str] = {}

    @classmethod
    def of(cls, checker: Checker, look: Look, lenient: bool) -> Memo | None:
        """The store for calls like this one, None if nothing may be stored."""
        settings = checker.settings
        others = not checker.plugins.own_only or settings.measured is not None or checker.suggest or checker.site
        if others or os.environ.get(VARIABLE) or not cache_folder.folder():
            return None
        asked = (_said(settings), checker.facts, checker.choice, look, lenient, checker.isolated)
        said = (*asked, os.getcwd(), spoken().language)
        return cls(f"{__version__}\n{rule_registry.stamp()}\n{said!r}", checker)

    def recall(self, item: Named) -> Told | None:
        """The report of a file, None if it is unknown or out of date."""
        kept = cache_folder.read(self._name(item))
        try:
            found = json.loads(kept or "")
            if any(self._state(path) != state for path, state in found["files"]):
                return None
            told = Told(*found["told"])
            told = told._replace(entries=tuple(Entry(*entry) for entry in told.entries))
            texts = (*told.problems, *told.unverified, *told.details, *told.targets, *(e.text for e in told.entries))
            return told if all(map(_printable, texts)) else None
        except (ValueError, KeyError, TypeError):
            return None

    def keep(self, item: Named, told: Told, looked: tuple[str, ...]) -> None:
        """Remember the report of a file that was read after this memory was made."""
        if told.unreadable or told.crashed or self._checker.settings_of(item.path).measured is not None:
            return
        files = [(path, self._state(path)) for path in (os.path.abspath(item.path), *map(os.path.abspath, looked))]
        times = (state[:2] for _, state in files if state and len(state) == len(_PARTS))
        if not any(max(changed) > self._now - FRESH for changed in times):
            cache_folder.write(self._name(item), json.dumps({"files": files, "told": told}, separators=(",", ":")))

    def _state(self, path: str) -> list[Any] | None:
        """A key that changes with a file, or when a folder gains or loses a file; None if there is neither."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return None
        if not S_ISDIR(status.st_mode):
            return [getattr(status, part) for part in _PARTS]
        if path not in self._folders:
            names = (entry.name for entry in listed(path))
            others = "/".join(name for name in names if not name.endswith(WRITTEN_BY_RUNS))
            self._folders[path] = cache_folder.digest(others)
        return [self._folders[path]]

    def sweep(self) -> None:
        """Remove entries that have not been used for a long time."""
        cache_folder.sweep(FOLDER, self._now / 1e9)

    def _name(self, item: Named) -> str:
        nearest = self._checker.settings_of(item.path)
        near = "" if nearest is self._checker.settings else repr(_said(nearest))
        about = f"{self._key} {near} {item.asked} {item.name} {os.path.abspath(item.path)}"
        return f"{FOLDER}/{cache_folder.digest(about)}.json"


def _said(settings: Settings) -> tuple[object, ...]:
    """The settings, and their folder."""
    return settings.root, sorted(settings.raw.items(), key=str)


def _printable(text: str) -> bool:
    """Whether a text contains no terminal control sequences except colors, as in preflight's own reports."""
    return not obeyed(_COLOR.sub("", text).replace("\n", ""))


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
                raise Died("a worker process was killed") from None
            if error is not None:
                raise error
            done[index] = results
            if not _give(pipe, left):
                busy.remove(pipe)
        while due in done:
            yield from done.pop(due)
            due += 1


def _give(pipe: Connection, left: Iterator[int]) -> bool:
    """Hand out the next batch, if there is one. The end of a dead process's pipe counts as its answer."""
    if (index := next(left, None)) is None:
        return False
    with contextlib.suppress(OSError):
        pipe.send(index)
    return True


def _serve(
    pipe: Connection, others: Sequence[Connection], work: Callable[[Any], Any], chunks: Sequence[Sequence[Any]]
) -> None:
    """The loop of a process: it ends when the other end of its pipe is closed, or when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles signals for all
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:  # only the parent keeps them open
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
        """Check a file and remember its report."""
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
        yield from map(self.check, files[:FIRST])  # the other processes inherit the modules loaded here
        yield from spread(self.check, files[FIRST:], processes)


def _processes(files: int, jobs: int) -> int:
    """The number of processes for this many files."""
    if not hasattr(os, "fork") or sys.platform == "darwin":
        return 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(jobs or min(usable, files // PAYS), max(files, 1))
