"""Spreads work over forked processes, which inherit everything that is loaded. None of them outlives the call,
however it ends."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

CHUNK = 8
"""Items that a process takes at a time: few enough that none ends long before the others, or works on for nobody."""


class Died(RuntimeError):
    """A process of the work ended by itself."""


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
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, [ours, *team], work, chunks), daemon=True)
    process.start()
    theirs.close()
    team[ours] = process


def _results(team: dict[Connection, BaseProcess], number: int) -> Iterator[Any]:
    """Hand out pieces of the work to whoever is free, and give their results in order."""
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
    """Hand out the next piece of the work, where there is one. Who has died answers with the end of its pipe."""
    if (index := next(left, None)) is None:
        return False
    with contextlib.suppress(OSError):
        pipe.send(index)
    return True


def _serve(
    pipe: Connection, others: Sequence[Connection], work: Callable[[Any], Any], chunks: Sequence[Sequence[Any]]
) -> None:
    """A process's life: it ends when the other end of its pipe is gone, or it is killed."""
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
