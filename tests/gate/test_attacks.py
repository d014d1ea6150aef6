"""The resident checker and the command under attack: as a process, over its socket, with what strangers and bad days bring."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from asking import Checker, wait_for
from test_gate import BAD, GOOD

Start = Callable[..., Checker]
PIPELINE = "#!/bin/bash\n" + "a|" * 300_000 + "a\n"
ARMS = "#!/bin/bash\ncase $x in\n" + "".join(f"{i}) a ;;\n" for i in range(20_000)) + "esac\n"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Checker] = []

    def call(*options: str, audit: Path | None = None) -> Checker:
        running.append(Checker(tmp_path, *options, audit=audit))
        return running[-1]

    yield call
    for checker in running:
        checker.stop()


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
        (question("Transfer-Encoding: chunked", body=b"5\r\nabcde\r\n0\r\n\r\n"), "a body in chunks is not read"),
        (question(), "a body without its length is not read"),
        (question("Content-Length: 0"), "is empty: there is no job to check"),
        (question("Content-Length: 50", body=b"#!/bin/bash\n"), "the script did not arrive whole"),
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
    assert time.monotonic() - begin < 2
    slow[-1].settimeout(10)
    assert wait_for(lambda: slow[-1].recv(1000) == b"", 10)
    assert len(os.listdir(f"/proc/{checker.process.pid}/task")) < 64
    for caller in slow:
        caller.close()


def test_a_second_checker_does_not_take_the_socket_of_the_first(start: Start, tmp_path: Path) -> None:
    first = start()
    words = [sys.executable, "-m", "preflight", "gate-serve", "--socket", str(first.path)]
    second = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert second.returncode == 2 and "another checker listens on it" in second.stderr
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
    ran = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 2 and "is there already and is not a socket" in ran.stderr
    assert precious.read_text() == "a: 1\n"


def test_an_override_that_cannot_be_recorded_is_not_granted(start: Start) -> None:
    checker = start(audit=Path("/dev/full"))
    answer = checker.ask(BAD, "user=1&override=please")
    assert answer.startswith("1\n") and "cannot be recorded" in answer and "overridden and recorded" not in answer
    assert checker.ask(GOOD).startswith("0\n")
    assert checker.log().count("the audit file cannot be written") == 1


def test_lines_that_were_lost_are_counted_when_the_file_can_be_written_again(start: Start, tmp_path: Path) -> None:
    checker = start("--timeout", "5")
    checker.audit.unlink()
    checker.audit.mkdir()
    assert checker.ask(GOOD).startswith("0\n") and checker.ask(BAD).startswith("1\n")
    checker.audit.rmdir()
    checker.ask(GOOD)
    lost, line = checker.lines()
    assert (lost["submissions"], line["verdict"]) == (2, "pass")


def test_without_an_audit_file_nothing_is_called_recorded(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "preflight", "gate", "--script", "-", "--override", "a test", "-f", "text"]
    ran = subprocess.run(words, input=BAD, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 0 and "recorded" not in ran.stderr and "overridden" in ran.stderr


@pytest.mark.parametrize("script", [PIPELINE, ARMS], ids=["pipeline", "case arms"])
def test_what_had_no_verdict_once_is_answered_at_once(start: Start, script: str) -> None:
    checker = start("--timeout", "0.2")
    first, begin = checker.ask(script), time.monotonic()
    if first.startswith("2\n"):
        pytest.skip("this script is refused before it is parsed")
    second = checker.ask(script, "user=2")
    assert (
        first.startswith("3\n") and second.startswith("3 busy") and "had no verdict before" in " ".join(second.split())
    )
    assert time.monotonic() - begin < 0.5
    assert [line["exit"] for line in checker.lines()] == [3, 3]


def test_a_killed_worker_leaves_a_line_and_the_next_question_an_answer(start: Start) -> None:
    checker = start("--workers", "1", "--timeout", "5")
    (worker,) = checker.workers()
    os.kill(worker, signal.SIGSTOP)
    with subprocess.Popen([sys.executable, "-c", _caller(checker)], stdout=subprocess.PIPE, text=True) as asking:
        time.sleep(0.5)
        os.kill(worker, signal.SIGKILL)
        answer, _ = asking.communicate(timeout=20)
    assert "the check ended its process" in " ".join(answer.split())
    assert wait_for(lambda: checker.ask(GOOD).startswith("0\n"), 10)
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
    assert wait_for(lambda: checker.ask("true") and "a worker cannot be started" in checker.log(), 10), checker.log()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert wait_for(lambda: checker.ask(GOOD, f"user={time.monotonic_ns()}").startswith("0\n"), 20), checker.log()


def test_memory_of_a_worker_is_limited(start: Start) -> None:
    checker = start()
    for worker in checker.workers():
        limits = Path(f"/proc/{worker}/limits").read_text()
        data = int(re.search(r"Max data size +(\d+)", limits)[1])  # type: ignore[index]
        assert data < 450 * 1024 * 1024, limits


@pytest.mark.parametrize("query", ["user=1&nodes=two", "user=1&nodes=1&devices_per_node=-8"])
def test_a_bad_count_is_audited(start: Start, query: str) -> None:
    checker = start()
    assert checker.ask(GOOD, query).startswith("2\n")
    assert [line["problem"] for line in checker.lines()] != [None]


def test_where_rules_are_final_nothing_passes_without_a_verdict(start: Start) -> None:
    checker = start("--final", "device-count", "--timeout", "0.2")
    answers = [checker.ask(text, "user=1&override=please") for text in (PIPELINE, PIPELINE, b"\xff\xfe", b"")]
    assert [answer[0] for answer in answers] == ["1"] * 4
    assert all("rules are final here" in answer for answer in answers), answers
    assert [line["exit"] for line in checker.lines()] == [1] * 4


def test_submissions_about_which_nobody_asked_are_audited_and_counted(start: Start) -> None:
    checker = start()
    checker.ask(GOOD, "user=1&unasked=2001:3,2002:1,x:,:4,bad")
    lost = [(line.get("user"), line["submissions"]) for line in checker.lines() if "submissions" in line]
    assert lost == [("2001", 3), ("2002", 1), ("", 4)]
    assert "not asked about: 8" in checker.send(b"GET / HTTP/1.1\r\n\r\n")


def test_the_command_keeps_its_deadline_in_c_code(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(PIPELINE)
    words = [sys.executable, "-m", "preflight", "gate", "--script", "a.sh", "--timeout", "1", "--audit", "log"]
    begin = time.monotonic()
    ran = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert ran.returncode in (2, 3) and time.monotonic() - begin < 5, ran
    data = json.loads(ran.stdout)
    assert (data["verdict"], data["exit"]) == ("unknown", ran.returncode) and data["problem"]
    assert json.loads((tmp_path / "log").read_text())["exit"] == ran.returncode


def test_the_command_refuses_what_it_could_not_judge_where_rules_are_final(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(PIPELINE)
    words = [sys.executable, "-m", "preflight", "gate", "--script", "a.sh", "--timeout", "1", "--final", "device-count"]
    assert subprocess.run(words, capture_output=True, cwd=tmp_path, timeout=60, check=False).returncode == 1


@pytest.mark.parametrize("option", ["--script", "--manifest", "--allocation"])
def test_a_device_that_never_ends_is_refused(tmp_path: Path, option: str) -> None:
    words = [sys.executable, "-m", "preflight", "gate", option, "/dev/zero"]
    limited = ["prlimit", f"--as={1024**3}", *words]
    ran = subprocess.run(limited, capture_output=True, text=True, input="true\n", timeout=30, check=False)
    assert ran.returncode == 2 and "is longer than" in ran.stderr, ran.stderr
