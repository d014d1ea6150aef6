"""The socket of the resident checker: a socket in use is never taken over, and no other file is touched."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from asking import Start, wait_for
from clock import FOREVER
from test_gate import GOOD

pytestmark = pytest.mark.slow


def test_a_second_checker_does_not_take_the_socket_of_the_first(start: Start, tmp_path: Path) -> None:
    first = start()
    words = [sys.executable, "-m", "preflight", "gate-serve", "--socket", str(first.path)]
    second = subprocess.run(words, capture_output=True, text=True, timeout=FOREVER, check=False)
    assert second.returncode == 2 and "another checker is listening on it" in second.stderr
    assert first.ask(GOOD).startswith("0\n")


def test_a_checker_takes_the_socket_that_a_dead_one_left(start: Start) -> None:
    start().process.send_signal(signal.SIGKILL)
    wait_for(lambda: False, 0.3)
    assert start().ask(GOOD).startswith("0\n")


def test_a_checker_that_ends_leaves_the_socket_of_another_one(start: Start, tmp_path: Path) -> None:
    first = start()
    first.path.unlink()
    second = start()
    first.process.terminate()
    first.process.wait(10)
    assert second.ask(GOOD).startswith("0\n")


def test_a_file_that_is_no_socket_is_kept(tmp_path: Path) -> None:
    precious = tmp_path / "precious.yaml"
    precious.write_text("a: 1\n")
    words = [sys.executable, "-m", "preflight", "gate-serve", "--socket", str(precious)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=FOREVER, check=False)
    assert ran.returncode == 2 and "already exists and is not a socket" in ran.stderr
    assert precious.read_text() == "a: 1\n"
