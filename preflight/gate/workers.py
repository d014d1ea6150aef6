"""Processes that check submissions: each answers one at a time, and one that hangs or dies is replaced."""

from __future__ import annotations

import multiprocessing
import queue
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple

Answer = bytes
Work = Callable[[bytes], Answer]
GRACE = 0.25
MOST_ANSWERS = 5000


class Worker(NamedTuple):
    """A process and our end of its pipe."""

    process: BaseProcess
    pipe: Connection


class Workers:
    """A fixed number of workers. `setup` runs once in each and gives the function that answers."""

    def __init__(self, number: int, setup: Callable[[], Work]) -> None:
        self._context = multiprocessing.get_context("fork")
        self._setup = setup
        self._idle: queue.Queue[Worker] = queue.Queue()
        for _ in range(number):
            self._idle.put(self._start())

    def _start(self) -> Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._setup), daemon=True)
        process.start()
        theirs.close()
        return Worker(process, ours)

    def ask(self, question: bytes, seconds: float) -> Answer | None:
        """The answer, or None when there is none in time; waiting for an idle worker counts."""
        try:
            worker = self._idle.get(timeout=seconds)
        except queue.Empty:
            return None
        try:
            worker.pipe.send_bytes(question)
            if worker.pipe.poll(seconds + GRACE):
                answer = worker.pipe.recv_bytes()
                self._idle.put(worker)
                return answer
        except (OSError, EOFError):
            pass
        self._replace(worker)
        return None

    def _replace(self, worker: Worker) -> None:
        worker.process.kill()
        worker.process.join(1)
        worker.pipe.close()
        self._idle.put(self._start())

    def stop(self) -> None:
        """End all idle workers."""
        while not self._idle.empty():
            worker = self._idle.get_nowait()
            worker.process.kill()
            worker.process.join(1)
            worker.pipe.close()


def _serve(pipe: Connection, setup: Callable[[], Work]) -> None:
    """A worker's life. It ends by itself after many answers, so that nothing can pile up in it."""
    work = setup()
    for _ in range(MOST_ANSWERS):
        try:
            question = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        pipe.send_bytes(work(question))
