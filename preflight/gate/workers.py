"""Processes that check submissions: each answers one at a time, and one that hangs or dies is replaced."""

from __future__ import annotations

import multiprocessing
import os
import queue
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from preflight.record import NamedTuple

Answer = bytes
Work = Callable[[bytes], tuple[Answer, bool]]
"""Answers a question, and says whether the worker is fit for another one."""
GRACE = 0.25
MOST_ANSWERS = 2000
LOOK_FOR_PARENT = 5.0
MOST_FILES = 4096
MORE, LAST = b"+", b"-"


class Worker(NamedTuple):
    """A process and our end of its pipe."""

    process: BaseProcess
    pipe: Connection


class Workers:
    """A fixed number of workers. They are copies of this process: what `work` has loaded before is there at once in each."""

    def __init__(self, number: int, work: Work) -> None:
        self._context = multiprocessing.get_context("fork")
        self._work = work
        self._idle: queue.Queue[Worker] = queue.Queue()
        for _ in range(number):
            self._idle.put(self._start())

    def _start(self) -> Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._work), daemon=True)
        process.start()
        theirs.close()
        return Worker(process, ours)

    def ask(self, question: bytes, seconds: float) -> Answer | None:
        """The answer, or None when there is none in time; waiting for an idle worker counts. One worker that died is no reason to give up."""
        end = time.monotonic() + seconds
        for _ in range(2):
            try:
                worker = self._idle.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                return None
            try:
                worker.pipe.send_bytes(question)
                if worker.pipe.poll(max(end - time.monotonic(), 0) + GRACE):
                    state, answer = (said := worker.pipe.recv_bytes())[:1], said[1:]
                    self._idle.put(worker) if state == MORE else self._replace(worker)
                    return answer
            except (OSError, EOFError):
                self._replace(worker)
                continue
            self._replace(worker)
            return None
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


def _serve(pipe: Connection, work: Work) -> None:
    """A worker's life. It ends after many answers, so that nothing can pile up in it, and when its parent is gone."""
    os.closerange(3, pipe.fileno())  # connections and pipes of others stay theirs
    os.closerange(pipe.fileno() + 1, MOST_FILES)
    parent = os.getppid()
    for left in reversed(range(MOST_ANSWERS)):
        while not pipe.poll(LOOK_FOR_PARENT):
            if os.getppid() != parent:
                return
        try:
            answer, fit = work(pipe.recv_bytes())
            pipe.send_bytes((MORE if fit and left else LAST) + answer)
        except (EOFError, OSError):
            return
