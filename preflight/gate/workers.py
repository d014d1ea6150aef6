"""Processes that check submissions: each answers one at a time within limits, and is replaced if it hangs or dies."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from preflight.gate.check_limits import MIB, limit_memory, limit_processor
from preflight.gate.submission import Submission
from preflight.gate.verdict import FAILED, Policies, Reply, judge, without_verdict
from preflight.loaders.text_limits import parse_in_this_process
from preflight.plugins.manager import Plugins
from preflight.source.record import NamedTuple

Work = Callable[[bytes], tuple[bytes, bool]]
"""Answers a request, and returns whether the worker can answer another one."""
GRACE = 0.05
"""Seconds beyond a deadline, for the answer of a worker whose own alarm fired."""
MOST_ANSWERS = 2000
MOST_MEMORY = 256 * MIB
LOOK_FOR_PARENT = 5.0
MOST_FILES = 4096
AGAIN = 0.5
"""Seconds until the start of a failed worker is retried."""
STUCK = struct.pack("ll", 1, 0)
"""Seconds for a write or read on the pipe of a stopped process."""
LOOK = 0.05
"""Seconds between two reads of a worker's processor time."""
MORE, LAST, UNFIT = b"+", b".", b"-"
CPU = struct.Struct("d")


class Worker(NamedTuple):
    """A process and the parent's end of its pipe."""

    process: BaseProcess
    pipe: Connection

    def end(self) -> None:
        """Kill it and wait until it ends."""
        self.process.kill()
        self.process.join(1)
        self.pipe.close()


class Outcome(NamedTuple):
    """An answer with the processor seconds that it took; or no answer, the reason, and the elapsed seconds. busy: no
    worker was free. fit: the worker can continue. worked: the check itself took the time, not a slow machine.
    """

    answer: bytes | None
    seconds: float
    why: str = ""
    busy: bool = False
    fit: bool = False
    worked: bool = True


class Workers:
    """A fixed number of workers, forked from this process, so that everything `work` has loaded is available in each.
    `tell` receives a line if a worker cannot be started; the start is retried until it succeeds.
    """

    def __init__(
        self, number: int, work: Work, tell: Callable[[str], None] = lambda line: None, memory: int = MOST_MEMORY
    ) -> None:
        self._context = multiprocessing.get_context("fork")
        self._work, self._tell, self._memory = work, tell, memory
        self._idle: queue.Queue[Worker] = queue.Queue()
        self._worn: queue.Queue[Worker | None] = queue.Queue()
        self._ending = threading.Event()
        self._busy: set[Worker] = set()
        for _ in range(number):
            self._idle.put(self._start())
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _start(self) -> Worker:
        ours, theirs = self._context.Pipe()
        try:
            _bound(ours)
            process = self._context.Process(target=_serve, args=(theirs, self._work, self._memory), daemon=True)
            process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return Worker(process, ours)

    def ask(
        self, question: bytes, seconds: float, *, processor: float | None = None, patience: float | None = None
    ) -> Outcome:
        """The answer, or the reason why there is none. processor: limit of processor seconds; patience: seconds to wait
        for a worker."""
        worker = self._take(seconds if patience is None else patience)
        if worker is None:
            return Outcome(None, 0, "all workers are busy", busy=True)
        start, before = time.monotonic(), _processor(worker.process.pid)
        most = seconds if processor is None else processor
        self._busy.add(worker)
        try:
            worker.pipe.send_bytes(CPU.pack(seconds) + question)
            if self._wait(worker, start + seconds + GRACE, before + most):
                said = worker.pipe.recv_bytes()
                (self._idle if said[:1] == MORE else self._worn).put(worker)
                return Outcome(said[1 + CPU.size :], CPU.unpack_from(said, 1)[0], fit=said[:1] != UNFIT)
            why, worked = (
                f"no verdict within {min(seconds, most):.2g} s",
                _processor(worker.process.pid) - before > most / 2,
            )
        except (OSError, EOFError):
            why, worked = (
                "the checker is shutting down" if self._ending.is_set() else "the check crashed its process",
                True,
            )
        finally:
            self._busy.discard(worker)
        self._worn.put(worker)
        return Outcome(None, time.monotonic() - start, why, worked=worked)

    def _wait(self, worker: Worker, end: float, processor: float) -> bool:
        """Whether an answer came before a time limit and a limit of processor seconds of the worker."""
        while (left := end - time.monotonic()) > 0:
            if worker.pipe.poll(min(left, LOOK)):
                return True
            if _processor(worker.process.pid) > processor + GRACE:
                return False
        return False

    def _take(self, patience: float) -> Worker | None:
        """An idle worker that is alive; the search continues if one has died meanwhile."""
        end = time.monotonic() + patience
        while True:
            try:
                worker = self._idle.get(timeout=max(end - time.monotonic(), 0.001))
            except queue.Empty:
                return None
            if worker.process.is_alive() and not worker.pipe.poll():
                return worker
            self._worn.put(worker)

    def _keep(self) -> None:
        """End used-up workers and start others, in one thread, so that no answer waits for that."""
        while (worker := self._worn.get()) is not None:
            worker.end()
            failed = False
            while not self._ending.is_set():
                try:
                    self._idle.put(self._start())
                    break
                except OSError as error:
                    if not failed:
                        self._tell(f"a worker cannot be started: {error.strerror or error}; retrying")
                    failed = True
                    self._ending.wait(AGAIN)

    def hurry(self) -> None:
        """End running checks: each waiting caller is informed, and no more workers are assigned."""
        self._ending.set()
        for worker in tuple(self._busy):
            worker.process.kill()

    def stop(self) -> None:
        """End all idle workers."""
        self._ending.set()
        self._worn.put(None)
        self._keeper.join(2)
        while not self._idle.empty():
            self._idle.get_nowait().end()


def _processor(pid: int | None) -> float:
    """Processor seconds of a process so far; 0 if the system does not report it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def _bound(pipe: Connection) -> None:
    """Writes and reads on it time out after a second."""
    with socket.socket(fileno=os.dup(pipe.fileno())) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, STUCK)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, STUCK)


def _serve(pipe: Connection, work: Work, memory: int) -> None:
    """A worker's main loop. It ends after many answers, so that nothing accumulates in it, and if its parent is
    gone."""
    os.closerange(3, pipe.fileno())  # connections and pipes of other processes are closed here
    os.closerange(pipe.fileno() + 1, MOST_FILES)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # signals of a terminal are ignored: the parent ends its workers
    limit_memory(memory)
    parse_in_this_process()
    parent = os.getppid()
    for left in reversed(range(MOST_ANSWERS)):
        while not pipe.poll(LOOK_FOR_PARENT):
            if os.getppid() != parent:
                return
        try:
            question = pipe.recv_bytes()
            limit_processor(CPU.unpack_from(question)[0])
            before = time.process_time()
            answer, fit = work(question[CPU.size :])
            pipe.send_bytes(
                (UNFIT if not fit else MORE if left else LAST) + CPU.pack(time.process_time() - before) + answer
            )
        except (EOFError, OSError, MemoryError):
            return


MOST_MEMORY_ONCE = 512 * MIB


def judge_apart(submission: Submission, plugins: Plugins, policies: Policies, *, recorded: bool) -> Reply:
    """The reply to a submission within the deadline, even if the check hangs."""

    def work(question: bytes) -> tuple[bytes, bool]:
        return Reply.of(judge(submission, plugins, policies), recorded=recorded).encode(), True

    if not hasattr(os, "fork"):
        return Reply.decode(work(b"")[0])
    start = time.monotonic()
    workers = Workers(1, work, memory=MOST_MEMORY_ONCE)
    try:
        outcome = workers.ask(b"", policies.seconds - (time.monotonic() - start))
    finally:
        workers.stop()
    if outcome.answer is not None:
        return Reply.decode(outcome.answer)
    verdict = without_verdict(submission, outcome.why, FAILED, policies, time.monotonic() - start)
    return Reply.of(verdict, recorded=recorded)
