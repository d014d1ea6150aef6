"""preflight stops on SIGTERM, on Ctrl-C, and when its output is closed, without leaving processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bounded import GRAPH
from clock import FOREVER

pytestmark = pytest.mark.slow

if sys.platform != "linux":
    pytest.skip("looks for children in /proc", allow_module_level=True)

FILES = 12_000
SECONDS = FOREVER
"""Wall-clock seconds on a busy machine; on an idle one it takes a third of a second."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("many")
    for number in range(FILES):
        (made / f"run{number}.yaml").write_text(f"{GRAPH}seed: {number}\n")
    return made


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """A call that is at work."""
    command = [sys.executable, "-m", "preflight", *words]
    running = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PREFLIGHT_NO_CACHE": "1"},
    )
    team, end = 2 if "2" in words else 0, time.monotonic() + FOREVER
    while len(children(running.pid)) < team and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(2)
    assert running.poll() is None, running.communicate()
    return running


def children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def ended(running: subprocess.Popen[bytes], began: float, team: list[int]) -> int:
    code = running.wait(FOREVER)
    assert time.monotonic() - began < SECONDS
    while (left := [pid for pid in team if Path(f"/proc/{pid}").exists()]) and time.monotonic() - began < SECONDS:
        time.sleep(0.05)
    assert not left
    assert running.stderr is not None and b"Traceback" not in running.stderr.read()
    return code


@pytest.mark.parametrize(
    "words",
    [("check", ".", "-j", "2"), ("check", ".", "-j", "1"), ("check", ".", "-f", "json"), ("fix", ".", "--diff")],
    ids=" ".join,
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_with_all_its_processes(words: tuple[str, ...], number: int, code: int, folder: Path) -> None:
    running = start(folder, *words)
    team, began = children(running.pid), time.monotonic()
    assert ("2" in words) == (len(team) == 2)
    running.send_signal(number)
    assert ended(running, began, team) == code


def test_sigterm_ends_a_watch(folder: Path) -> None:
    running = start(folder, "check", ".", "--watch")
    team, began = children(running.pid), time.monotonic()
    running.terminate()
    assert ended(running, began, team) == 143


def test_nobody_reads_the_report(folder: Path) -> None:
    running = start(folder, "check", ".", "-j", "2")
    team, began = children(running.pid), time.monotonic()
    assert running.stdout is not None
    running.stdout.close()
    assert ended(running, began, team) == 141


def test_its_processes_end_when_it_is_killed(folder: Path) -> None:
    running = start(folder, "check", ".", "-j", "2")
    team, began = children(running.pid), time.monotonic()
    running.kill()
    assert ended(running, began, team) == -signal.SIGKILL
