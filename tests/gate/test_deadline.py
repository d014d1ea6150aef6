"""The deadline of a verdict: it ends a check even if the first alarm was lost."""

from __future__ import annotations

import gc
import sys
import time

import pytest
from clock import FOREVER

from preflight.gate.check_limits import AGAIN, OutOfTime, deadline


class Late:
    """Takes long to be deleted and is part of a cycle, so the garbage collector deletes it: exceptions raised there are
    only printed."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        time.sleep(0.3)


def test_an_alarm_that_is_lost_in_a_finalizer_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: None)  # pytest's own may take longer than AGAIN
    start = time.monotonic()
    with pytest.raises(OutOfTime), deadline(0.1):
        Late()
        gc.collect()
        time.sleep(FOREVER)
    assert time.monotonic() - start < FOREVER / 2


def test_after_the_block_no_alarm_comes() -> None:
    with deadline(0.05):
        pass
    with pytest.raises(OutOfTime), deadline(0.05):
        time.sleep(5)
    time.sleep(AGAIN + 0.2)
