"""Time limits that hold on any machine: they detect work that does not end, and are not benchmarks."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

USUAL = 0.06
"""Seconds of the processor for the work of `slower` on a machine of today with nothing else to do."""
FOREVER = 120.0
"""Seconds after which a test gives up on a process that should have ended or answered."""


def slower() -> float:
    """The processor time of this busy machine for a fixed task, relative to the usual time; at least 1."""
    longest = 0.0
    for _ in range(20):
        start, total = time.thread_time(), 0
        for number in range(1_000_000):
            total += number * number % 7
        longest = max(longest, time.thread_time() - start)
    return max(1.0, longest / USUAL)


@contextmanager
def takes_at_most(seconds: float) -> Iterator[None]:
    """The block takes this much of the processor at most, or as much more as the machine is slower than usual.

    Allow ten times the usual time: an algorithm that grows too fast takes a thousand times. Memory of other tests is
    not collected during the measurement.
    """
    gc.freeze()
    start = time.thread_time()
    try:
        yield
    finally:
        taken = time.thread_time() - start
        gc.unfreeze()
    assert taken < seconds or taken < seconds * slower(), f"{taken:.2f} seconds of the processor"
