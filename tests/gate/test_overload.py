"""Checks that hang, die or grow, one after another: their cost is limited per user and in total, and the gate
recovers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Checker, wait_for
from clock import FOREVER
from slow_plugin import environment
from test_gate import BAD, GOOD

pytestmark = pytest.mark.slow

TIMEOUT = 0.3
HANGS = FOREVER / 2


@pytest.fixture
def checker(tmp_path: Path) -> Iterator[Checker]:
    made = Checker(tmp_path, "--timeout", str(TIMEOUT), environment=environment(tmp_path))
    yield made
    made.stop()


def script(what: str, number: object = "") -> str:
    return f"{GOOD}# {what} {number}\n"


def timed(checker: Checker, text: str, query: str) -> tuple[str, float]:
    start = time.monotonic()
    return checker.ask(text, query), time.monotonic() - start


def test_a_check_that_hangs_in_c_code_is_ended_and_answered_at_once_from_then_on(checker: Checker) -> None:
    answer, seconds = timed(checker, script("HANG"), "user=1")
    assert answer.startswith("3\n") and "no verdict within" in answer and seconds < HANGS
    answer, seconds = timed(checker, script("HANG"), "user=2")
    assert answer.startswith("3 busy\n") and "had no verdict before" in " ".join(answer.split()) and seconds < HANGS
    assert [line["user"] for line in checker.lines()] == ["1", "2"]


def test_a_user_who_floods_is_turned_away_and_others_are_not(checker: Checker) -> None:
    assert checker.ask(GOOD, "user=innocent").startswith("0\n")
    answers = [checker.ask(script("HANG", i), "user=hostile") for i in range(12)]
    assert "busy user" in answers[-1] or "busy all" in answers[-1]
    assert checker.ask(GOOD, "user=innocent").startswith("0\n") and checker.ask(BAD, "user=innocent").startswith("1\n")
    assert len(checker.lines()) == 15


def test_many_users_with_different_scripts_cost_little_in_all_and_it_is_over_by_itself(checker: Checker) -> None:
    start = time.monotonic()
    answers = [checker.ask(script("HANG", i), f"user={i}") for i in range(100)]
    assert time.monotonic() - start < 100 * TIMEOUT
    assert all(answer.startswith("3") for answer in answers) and sum("busy all" in answer for answer in answers) > 80
    assert checker.log().count("too many checks end without a verdict") == 1
    assert wait_for(lambda: checker.ask(BAD, "user=somebody").startswith("1\n"))
    assert checker.log().count("submissions are checked again") == 1
    assert len(checker.lines()) >= 101


def test_checks_that_kill_their_process_open_the_breaker_too(checker: Checker) -> None:
    answers = [checker.ask(script("DIE", i), f"user={i}") for i in range(60)]
    assert "the check crashed its process" in " ".join(answers[0].split())
    assert "busy all" in answers[-1] and checker.log().count("too many checks end without a verdict") == 1
    assert wait_for(lambda: checker.ask(BAD, "user=somebody").startswith("1\n"))


def test_checks_that_take_memory_stay_within_the_limit_of_the_service(tmp_path: Path) -> None:
    checker = Checker(tmp_path, "--timeout", "5", environment=environment(tmp_path))
    peak, over = [0.0], threading.Event()

    def weigh() -> None:
        while not over.wait(0.01):
            peak[0] = max(peak[0], checker.mebibytes())

    watcher = threading.Thread(target=weigh)
    watcher.start()
    callers = [threading.Thread(target=checker.ask, args=(script("GROW", i), f"user={i}")) for i in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    over.set()
    watcher.join()
    try:
        assert 100 < peak[0] < 800, peak
        assert [line["verdict"] for line in checker.lines()] == ["unknown"] * 4
        assert wait_for(lambda: checker.ask(GOOD, "user=9").startswith("0\n"))
    finally:
        checker.stop()


def test_a_checker_ends_with_all_its_workers_while_checks_hang(tmp_path: Path) -> None:
    checker = Checker(tmp_path, "--timeout", "5", environment=environment(tmp_path))
    answers: list[str] = []
    caller = threading.Thread(target=lambda: answers.append(checker.ask(script("HANG"), "user=1")))
    caller.start()
    workers = checker.workers()
    time.sleep(0.5)
    checker.process.terminate()
    assert checker.process.wait(9) == 0  # before the deadline of the check
    caller.join()
    assert [answer[:1] for answer in answers] == ["3"] and "the checker is shutting down" in answers[0]
    assert [line["problem"] for line in checker.lines()] == ["the checker is shutting down"]
    assert not [pid for pid in workers if os.path.exists(f"/proc/{pid}")] and not checker.path.exists()
    checker.stop()
