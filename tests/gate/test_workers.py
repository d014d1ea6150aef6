"""The resident checker's processes: one that hangs, dies or wears out is replaced, and no question is lost."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from clock import FOREVER

from preflight.gate import workers
from preflight.gate.workers import Workers


def work(question: bytes) -> tuple[bytes, bool]:
    if question == b"hang":
        time.sleep(60)
    if question == b"die":
        os._exit(9)
    return str(os.getpid()).encode(), question != b"unfit"


@pytest.fixture
def pool():
    made = Workers(1, work)
    yield made
    made.stop()


def test_a_hanging_worker_costs_the_deadline_only(pool):
    start = time.monotonic()
    assert pool.ask(b"hang", 0.2).answer is None
    assert time.monotonic() - start < FOREVER / 4
    assert pool.ask(b"next", 5).answer is not None


def test_a_question_that_kills_has_no_answer_and_the_next_one_has(pool):
    assert pool.ask(b"die", 5).answer is None
    assert pool.ask(b"next", 5).answer is not None


def test_a_worker_that_is_not_fit_is_replaced_unnoticed(pool):
    first = pool.ask(b"unfit", 5).answer
    second = pool.ask(b"next", 5).answer
    assert None not in (first, second) and first != second


def test_a_worker_that_wore_out_loses_no_question(monkeypatch):
    monkeypatch.setattr(workers, "MOST_ANSWERS", 3)
    made = Workers(2, work)
    answers = [made.ask(b"x", 5).answer for _ in range(20)]
    made.stop()
    assert None not in answers and len(set(answers)) >= 6


class Socket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("preflight", timeout=FOREVER)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(str(self.path))


def asked(path: Path, query: str, body: bytes, **headers: str) -> str:
    connection = Socket(path)
    connection.request("POST", f"/gate?{query}", body, headers)
    return connection.getresponse().read().decode()


@pytest.fixture
def server(tmp_path: Path):
    path = tmp_path / "gate.sock"
    running = subprocess.Popen(
        [sys.executable, "-m", "preflight", "gate-serve", "--socket", str(path), "--workers", "1"],
        stderr=subprocess.PIPE,
    )
    assert running.stderr is not None and b"listening" in running.stderr.readline()
    running.socket = path
    yield running
    running.kill()
    running.wait()
    running.stderr.close()


def test_the_server_answers_in_the_contracts_json(server):
    data = json.loads(
        asked(server.socket, "nodes=2&devices_per_node=8&name=a", b"#!/bin/sh\necho hello\n", Accept="application/json")
    )
    assert (data["schema"], data["verdict"], data["allocation"]["source"]) == (1, "unknown", "scheduler")


def test_wrong_questions_are_wrong_usage(server):
    assert asked(server.socket, "nodes=two", b"").startswith("2\n")
    assert asked(server.socket, "", b"\xff\xfe").startswith("2\n")


def test_the_socket_is_not_for_everybody(server):
    assert server.socket.stat().st_mode & 0o007 == 0


def test_workers_do_not_outlive_a_killed_server(server):
    children = [
        int(pid)
        for pid in subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(server.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
    ]
    assert children
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    end = time.monotonic() + FOREVER
    while (
        any(Path(f"/proc/{pid}/status").exists() and "Z" not in _state(pid) for pid in children)
        and time.monotonic() < end
    ):
        time.sleep(0.2)
    assert time.monotonic() < end


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
