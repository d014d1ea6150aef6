"""Questions during the shutdown of the resident checker; other ways in which a command ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Checker, wait_for
from clock import slower
from slow_plugin import environment
from test_gate import BAD, GOOD

pytestmark = pytest.mark.slow


@pytest.fixture
def checker(tmp_path: Path) -> Iterator[Checker]:
    made = Checker(tmp_path, "--timeout", "3", environment=environment(tmp_path))
    yield made
    made.stop()


def asked(checker: Checker, scripts: list[str]) -> tuple[list[threading.Thread], list[str]]:
    """Questions that are on their way, and the answers that come."""
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda text=text, user=user: answers.append(checker.ask(text, f"user={user}")))
        for user, text in enumerate(scripts)
    ]
    for thread in threads:
        thread.start()
    return threads, answers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_check_in_flight_is_answered(checker: Checker, number: signal.Signals) -> None:
    threads, answers = asked(checker, [f"{GOOD}# SLEEP", f"{BAD}# SLEEP"])
    wait_for(lambda: False, 0.5)  # both are with a worker, which sleeps for a second
    checker.process.send_signal(number)
    for thread in threads:
        thread.join(20)
    assert sorted(answer[0] for answer in answers) == ["0", "1"]
    assert checker.process.wait(20) == 0
    assert sorted(str(line["verdict"]) for line in checker.lines()) == ["pass", "refuse"]
    assert not checker.path.exists() and "Traceback" not in checker.log()


def test_nobody_who_asked_goes_without_an_answer(checker: Checker) -> None:
    threads, answers = asked(checker, [f"{GOOD}# SLEEP {number}" for number in range(12)])
    wait_for(lambda: False, 0.5)
    checker.process.terminate()
    for thread in threads:
        thread.join(30)
    assert len(answers) == 12 and all(answer[:1] in ("0", "3") for answer in answers), answers
    assert checker.process.wait(20) == 0 and len(checker.lines()) == 12


def test_a_question_that_does_not_arrive_keeps_it_from_ending_for_a_bounded_time(checker: Checker) -> None:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(20)
        caller.connect(str(checker.path))
        caller.sendall(b"POST /gate?user=9 HTTP/1.1\r\nContent-Length: 5000\r\n\r\n#!/bin/bash\n")
        wait_for(lambda: False, 0.2)
        checker.process.terminate()
        assert b"arrived incomplete" in b"".join(iter(lambda: caller.recv(65536), b"")).replace(b"\n  ", b" ")
    assert checker.process.wait(20) == 0
    assert [line["user"] for line in checker.lines()] == ["9"]


def test_a_checker_without_questions_ends_at_once(checker: Checker) -> None:
    checker.process.terminate()
    assert checker.process.wait(5 * slower()) == 0


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command line of bash, in which `preflight` is this one."""
    text = f'preflight() {{ {sys.executable} -m preflight "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, cwd=folder, timeout=60, check=False)


GONE = "mkdir inner && cd inner && rmdir ../inner && preflight"


@pytest.mark.parametrize(
    "command",
    ["check a.sh", "check", "fix a.sh", "gate --script ../a.sh --follow", "memory a.sh", "gate-serve --socket s"],
)
def test_a_working_directory_that_is_gone_is_said_in_a_line(tmp_path: Path, command: str) -> None:
    (tmp_path / "a.sh").write_text(BAD)
    ran = run(f"{GONE} {command.replace('../a.sh', str(tmp_path / 'a.sh'))}", tmp_path)
    assert ran.returncode == 2
    assert ran.stderr == "preflight: the working directory no longer exists; change to another one\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [("check a.sh", 2), ("memory a.sh", 2), ("rules", 2), ("check --help", 2), ("--version", 2), ("--help", 2)],
)
def test_a_full_disk_behind_stdout_is_said_in_a_line(tmp_path: Path, command: str, code: int) -> None:
    (tmp_path / "a.sh").write_text(BAD)
    ran = run(f"preflight {command} > /dev/full", tmp_path)
    assert (ran.returncode, ran.stderr) == (code, "preflight: stdout cannot be written: No space left on device\n")


@pytest.mark.parametrize(("script", "code"), [(GOOD, 0), (BAD, 1)])
def test_the_verdict_of_the_gate_stands_where_its_receipt_cannot_be_written(
    tmp_path: Path, script: str, code: int
) -> None:
    (tmp_path / "a.sh").write_text(script)
    ran = run("preflight gate --script a.sh --timeout 50 > /dev/full", tmp_path)
    assert ran.returncode == code and "stdout cannot be written: No space left on device" in ran.stderr
