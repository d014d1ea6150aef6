"""The resident checker under attack: slow scripts, dying workers, and its limits."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from asking import Checker, Start, wait_for
from clock import FOREVER
from hard import ARMS, PIPELINE
from test_gate import GOOD

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("script", [PIPELINE, ARMS], ids=["pipeline", "case arms"])
def test_what_had_no_verdict_once_is_answered_at_once(start: Start, script: str) -> None:
    checker = start("--timeout", "0.05")
    first = checker.ask(script)
    second = checker.ask(script, "user=2")
    assert (
        first.startswith("3\n") and second.startswith("3 busy") and "had no verdict before" in " ".join(second.split())
    )
    assert [line["exit"] for line in checker.lines()] == [3, 3]


def test_a_killed_worker_leaves_a_line_and_the_next_question_an_answer(start: Start) -> None:
    checker = start("--workers", "1", "--timeout", "5")
    (worker,) = checker.workers()
    os.kill(worker, signal.SIGSTOP)
    with subprocess.Popen([sys.executable, "-c", _caller(checker)], stdout=subprocess.PIPE, text=True) as asking:
        time.sleep(0.5)
        os.kill(worker, signal.SIGKILL)
        answer, _ = asking.communicate(timeout=FOREVER)
    assert "the check crashed its process" in " ".join(answer.split())
    assert wait_for(lambda: checker.ask(GOOD).startswith("0\n"))
    assert {line["verdict"] for line in checker.lines()} == {"unknown", "pass"} and len(checker.lines()) >= 2


def _caller(checker: Checker) -> str:
    return f"""
import socket
caller = socket.socket(socket.AF_UNIX)
caller.connect({str(checker.path)!r})
body = b"#!/bin/bash\\ntrue\\n"
caller.sendall(b"POST /gate?user=9 HTTP/1.1\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
print(b"".join(iter(lambda: caller.recv(65536), b"")).decode())
"""


def test_workers_come_back_after_forks_that_failed(start: Start) -> None:
    checker = start("--workers", "1", "--timeout", "1")
    pid = checker.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, before[1]))  # a pipe for another worker cannot be made
    os.kill(checker.workers()[0], signal.SIGKILL)
    assert wait_for(lambda: checker.ask("true") and "a worker cannot be started" in checker.log()), checker.log()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert wait_for(lambda: checker.ask(GOOD, f"user={time.monotonic_ns()}").startswith("0\n")), checker.log()


def test_memory_of_a_worker_is_limited(start: Start) -> None:
    checker = start()
    for worker in checker.workers():
        limits = Path(f"/proc/{worker}/limits").read_text()
        data = int(re.search(r"Max data size +(\d+)", limits)[1])  # type: ignore[index]
        assert data < 450 * 1024 * 1024, limits


def test_where_rules_are_final_nothing_passes_without_a_verdict(start: Start) -> None:
    checker = start("--final", "device-count", "--timeout", "0.2")
    answers = [checker.ask(text, "user=1&override=please") for text in (PIPELINE, PIPELINE, b"\xff\xfe", b"")]
    assert [answer[0] for answer in answers] == ["1"] * 4
    assert all("rules are final" in answer for answer in answers), answers
    assert [line["exit"] for line in checker.lines()] == [1] * 4
