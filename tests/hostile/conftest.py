"""A bound on the time of a test."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

SECONDS = 4.0


@pytest.fixture
def quick() -> Iterator[None]:
    """The test takes a few seconds of the processor at most."""
    started = time.thread_time()
    yield
    assert time.thread_time() - started < SECONDS
