"""A bound on the time of a test."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest

SECONDS = 20.0


@pytest.fixture(autouse=True)
def own_memory() -> Iterator[None]:
    """Memory of other tests is not collected while a test is timed, because a call has only its own."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def quick(own_memory: None) -> Iterator[None]:
    """The test takes a few seconds of the processor at most."""
    started = time.thread_time()
    yield
    assert time.thread_time() - started < SECONDS
