"""Broken, slow, endless and too large questions to the resident checker."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from asking import Start, wait_for
from clock import FOREVER
from test_gate import GOOD

pytestmark = pytest.mark.slow


def question(*headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join(["POST /gate?user=7 HTTP/1.1", "Host: preflight", *headers, "", ""]).encode() + body


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (question("Content-Length: -1"), "the length of the body is not a number: -1"),
        (question("Content-Length: abc"), "the length of the body is not a number: abc"),
        (question("Content-Length: 1_0"), "is not a number"),
        (question("Content-Length: 10", "Content-Length: 20"), "is not a number"),
        (question("Content-Length: 9999999999999999"), "the script is larger than"),
        (question("Transfer-Encoding: chunked", body=b"5\r\nabcde\r\n0\r\n\r\n"), "chunked bodies are not supported"),
        (question(), "bodies without a content length are not supported"),
        (question("Content-Length: 0"), "is empty, so there is no job to check"),
        (question("Content-Length: 50", body=b"#!/bin/bash\n"), "the script arrived incomplete"),
    ],
    ids=["negative", "no number", "underscore", "two lengths", "huge", "chunked", "no length", "empty", "cut off"],
)
def test_a_question_that_cannot_be_read_is_refused_and_audited(start: Start, data: bytes, why: str) -> None:
    checker = start()
    answer = checker.send(data, end=True)
    assert "\r\n\r\n2\n" in answer and why in " ".join(answer.split()), answer
    assert [(line["exit"], line["user"]) for line in checker.lines()] == [(2, "7")]
    assert checker.ask(GOOD).startswith("0\n")
    assert "Traceback" not in checker.log()


@pytest.mark.parametrize(
    "data",
    [b"\x00\xff" * 1000 + b"\r\n\r\n", b"GARBAGE\r\n\r\n", b"POST " + b"a" * 100_000, b"PUT / HTTP/1.1\r\n\r\n", b""],
)
def test_what_is_no_question_gets_no_verdict(start: Start, data: bytes) -> None:
    checker = start()
    assert "\n0\n" not in checker.send(data, end=True)
    assert checker.ask(GOOD).startswith("0\n")
    assert "Traceback" not in checker.log()


@pytest.mark.parametrize(
    ("data", "status", "user"),
    [
        (b"POST /gate?user=7&name=" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414, "7"),
        (b"POST /gate?user=7 HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431, "7"),
        (b"POST /gate?user=7 HTTP/1.1\r\n" + b"X: a\r\n" * 200 + b"\r\n", 431, "7"),
        (b"PUT /gate?user=7 HTTP/1.1\r\n\r\n", 501, "7"),
        (b"POST /gate?user=7 HTTP/9.1\r\n\r\n", 505, "7"),
        (b"GARBAGE\r\n\r\n", 400, ""),
    ],
    ids=["long line", "long header", "many headers", "another method", "another version", "garbage"],
)
@pytest.mark.parametrize("final", [False, True])
def test_what_is_refused_before_it_is_read_is_audited(
    start: Start, data: bytes, status: int, user: str, final: bool
) -> None:
    checker = start(*(["--final", "device-count"] if final else []))
    answer = checker.send(data, end=True)
    code = "1 final" if final else "2"
    head, _, body = answer.rpartition("\r\n\r\n")  # a caller that does not use HTTP gets no header
    assert body.startswith(f"{code}\n") and (not head or f" {status} " in head), answer
    (line,) = checker.lines()
    assert (line["exit"], line["user"]) == (int(code[0]), user) and "not a request to the gate" in str(line["problem"])
    assert "Traceback" not in checker.log()


def test_a_second_question_on_a_connection_is_not_read(start: Start) -> None:
    checker = start()
    one = question(f"Content-Length: {len(GOOD)}", body=GOOD.encode())
    assert checker.send(one + one).count("HTTP/1.1 200") == 1
    assert len(checker.lines()) == 1


def test_a_caller_that_asks_before_it_sends_does_not_wait(start: Start) -> None:
    checker = start()
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(5)
        caller.connect(str(checker.path))
        caller.sendall(question(f"Content-Length: {len(GOOD)}", "Expect: 100-continue"))
        assert caller.recv(1000).startswith(b"HTTP/1.1 100 ")
        caller.sendall(GOOD.encode())
        assert b"\r\n\r\n0\n" in b"".join(iter(lambda: caller.recv(65536), b""))


def test_a_caller_of_curl_sees_why_a_large_script_is_refused(start: Start, tmp_path: Path) -> None:
    checker = start()
    (tmp_path / "large").write_bytes(b"#" * 6_000_000)
    words = [
        "curl",
        "-s",
        "-S",
        "--max-time",
        "5",
        "--unix-socket",
        str(checker.path),
        "--data-binary",
        f"@{tmp_path}/large",
        "http://p/gate?user=3",
    ]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout[:2]) == (0, "2\n") and "larger than" in ran.stdout, ran
    assert [line["user"] for line in checker.lines()] == ["3"]


def test_slow_callers_make_nobody_wait_and_are_closed(start: Start) -> None:
    checker = start()
    slow = [socket.socket(socket.AF_UNIX) for _ in range(100)]
    for caller in slow:
        caller.connect(str(checker.path))
        caller.sendall(b"POST /gate HTTP/1.1\r\nContent-")
    begin = time.monotonic()
    assert checker.ask(GOOD).startswith("0\n")
    assert time.monotonic() - begin < FOREVER / 2  # one after the other they take longer
    slow[-1].settimeout(FOREVER)
    assert wait_for(lambda: slow[-1].recv(1000) == b"")
    assert len(os.listdir(f"/proc/{checker.process.pid}/task")) < 64
    for caller in slow:
        caller.close()


@pytest.mark.parametrize("query", ["user=1&nodes=two", "user=1&nodes=1&devices_per_node=-8"])
def test_a_bad_count_is_audited(start: Start, query: str) -> None:
    checker = start()
    assert checker.ask(GOOD, query).startswith("2\n")
    assert [line["problem"] for line in checker.lines()] != [None]
