"""Spreads work over forked processes, which inherit everything that is loaded."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

CHUNKS = 4
"""Every process gets so many pieces of the work, so that none ends long before the others."""

_work: list[Callable[[Any], Any]] = []


def spread(work: Callable[[Any], Any], items: Sequence[Any], processes: int) -> Iterator[Any]:
    """The results of a function for each item, in order; it is inherited, so only items and results are sent."""
    size = max(1, len(items) // (processes * CHUNKS))
    with ProcessPoolExecutor(processes, get_context("fork"), _begin, (work,)) as pool:
        yield from pool.map(_do, items, chunksize=size)


def _begin(work: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent tells of it
    _work.append(work)


def _do(item: Any) -> Any:
    return _work[0](item)
