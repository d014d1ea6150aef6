"""A limit on the time that a check may take, in the main thread of a process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 0.5
"""Seconds until it is raised anew: in a finalizer or a callback of the garbage collector an exception is lost."""


class OutOfTime(BaseException):
    """The deadline has passed. Not an Exception, so that no rule's handler swallows it."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raises OutOfTime inside the block after so many seconds; without effect outside the main thread."""
    if seconds <= 0 or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
