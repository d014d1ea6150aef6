"""The audit record of submissions, and overrides that cannot be recorded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from asking import Start, wait_for
from test_gate import BAD, GOOD

pytestmark = pytest.mark.slow

HANGING = """\
import os, time
_open = os.open
def hanging(path, *words, **more):
    while str(path).endswith("audit.jsonl") and os.path.exists({mark!r}):
        time.sleep(0.02)
    return _open(path, *words, **more)
os.open = hanging
"""
"""Simulates a hanging disk: opening the audit file waits as long as a file exists."""


def test_an_override_that_cannot_be_recorded_is_not_granted(start: Start, tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_text("{}\n" * 1000)
    checker = start(most=2000)
    answer = checker.ask(BAD, "user=1&override=please")
    assert answer.startswith("1\n") and "cannot be recorded" in answer and "overridden and recorded" not in answer
    assert checker.ask(GOOD).startswith("0\n")
    assert checker.log().count("the audit file cannot be written") == 1


def test_half_a_line_does_not_stay_on_a_full_disk(start: Start, tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_text("{}\n")
    checker = start(most=200)
    assert checker.ask(GOOD).startswith("0\n") and checker.ask(BAD).startswith("1\n")
    assert checker.audit.read_text() == "{}\n"


@pytest.mark.parametrize("what", ["pipe", "link", "folder", "no folder"])
def test_answers_stay_whatever_becomes_of_the_file(start: Start, tmp_path: Path, what: str) -> None:
    (tmp_path / "logs").mkdir()
    checker = start("--timeout", "30", audit=tmp_path / "logs/audit.jsonl")
    assert checker.ask(GOOD).startswith("0\n") and len(checker.lines()) == 1
    (tmp_path / "other").write_text("precious\n")
    if what == "no folder":
        shutil.rmtree(tmp_path / "logs")
    else:
        checker.audit.unlink()
    {"pipe": os.mkfifo, "folder": os.mkdir}.get(what, lambda path: None)(checker.audit)
    if what == "link":
        checker.audit.symlink_to(tmp_path / "other")
    assert checker.ask(GOOD).startswith("0\n") and checker.ask(BAD).startswith("1\n")
    assert checker.ask(BAD, "user=1&override=please").startswith("1\n")
    assert checker.log().count("the audit file cannot be written") == 1
    assert (tmp_path / "other").read_text() == "precious\n"
    if what == "no folder":
        (tmp_path / "logs").mkdir()
    elif what == "folder":
        checker.audit.rmdir()
    else:
        checker.audit.unlink()
    checker.ask(GOOD)
    lost, line = checker.lines()
    assert (lost["submissions"], line["verdict"]) == (3, "pass")
    assert checker.log().count("can be written again; 3 lines are missing") == 1


def test_a_disk_that_hangs_makes_nobody_wait(start: Start, tmp_path: Path) -> None:
    mark = tmp_path / "hangs"
    (tmp_path / "sitecustomize.py").write_text(HANGING.format(mark=str(mark)))
    checker = start("--timeout", "30", environment={**os.environ, "PYTHONPATH": str(tmp_path)})
    checker.ask(GOOD)
    mark.touch()
    for _ in range(5):
        assert checker.ask(GOOD).startswith("0\n")
    answer = checker.ask(BAD, "user=1&override=please")
    assert answer.startswith("1\n") and "does not respond" in answer
    assert checker.log().count("the audit file does not respond") == 1
    mark.unlink()
    assert wait_for(lambda: "responds again" in checker.log())
    checker.ask(BAD, "user=1&override=please")
    verdicts = [(line["verdict"], line["override"] is not None) for line in checker.lines()]
    assert verdicts == [("pass", False)] * 6 + [("refuse", False), ("pass", True)]


def test_an_override_that_comes_when_the_disk_begins_to_hang_is_not_granted(start: Start, tmp_path: Path) -> None:
    mark = tmp_path / "hangs"
    (tmp_path / "sitecustomize.py").write_text(HANGING.format(mark=str(mark)))
    checker = start("--timeout", "30", environment={**os.environ, "PYTHONPATH": str(tmp_path)})
    mark.touch()
    assert checker.ask(BAD, "user=1&override=please").startswith("1\n")
    mark.unlink()
    assert wait_for(lambda: "responds again" in checker.log())
    assert checker.lines()[-1]["verdict"] == "refuse"


def test_a_checker_that_ends_writes_what_waits(start: Start, tmp_path: Path) -> None:
    mark = tmp_path / "hangs"
    (tmp_path / "sitecustomize.py").write_text(HANGING.format(mark=str(mark)))
    checker = start("--timeout", "30", environment={**os.environ, "PYTHONPATH": str(tmp_path)})
    mark.touch()
    for _ in range(3):
        checker.ask(GOOD)
    checker.process.terminate()
    mark.unlink()
    assert checker.process.wait(20) == 0
    assert len(checker.lines()) == 3


@pytest.mark.parametrize("what", ["pipe", "link", "folder", "no folder"])
def test_a_checker_says_at_once_what_it_cannot_write(tmp_path: Path, what: str) -> None:
    audit = tmp_path / "folder/audit" if what == "no folder" else tmp_path / "audit"
    {"pipe": os.mkfifo, "folder": os.mkdir}.get(what, lambda path: None)(audit)
    if what == "link":
        audit.symlink_to(tmp_path / "other")
    words = [sys.executable, "-m", "preflight", "gate-serve", "--socket", str(tmp_path / "s"), "--audit", str(audit)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2 and len(ran.stderr.splitlines()) == 1 and str(audit) in ran.stderr, ran.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(("script", "code"), [(GOOD, 0), (BAD, 1)])
def test_the_command_gives_its_verdict_where_it_cannot_be_written_down(tmp_path: Path, script: str, code: int) -> None:
    os.mkfifo(tmp_path / "pipe")
    words = [sys.executable, "-m", "preflight", "gate", "--script", "-", "--audit", "pipe", "-f", "text"]
    words += ["--timeout", "60"]
    ran = subprocess.run(words, input=script, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert ran.returncode == code and "the audit file cannot be written" in ran.stderr, ran
    words += ["--override", "a test"]
    ran = subprocess.run(words, input=script, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert ran.returncode == code, ran


def test_lines_that_were_lost_are_counted_when_the_file_can_be_written_again(start: Start, tmp_path: Path) -> None:
    checker = start("--timeout", "30")
    checker.audit.unlink()
    checker.audit.mkdir()
    assert checker.ask(GOOD).startswith("0\n") and checker.ask(BAD).startswith("1\n")
    checker.audit.rmdir()
    checker.ask(GOOD)
    lost, line = checker.lines()
    assert (lost["submissions"], line["verdict"]) == (2, "pass")


def test_without_an_audit_file_nothing_is_called_recorded(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "preflight", "gate", "--script", "-", "--override", "a test", "-f", "text"]
    words += ["--timeout", "60"]
    ran = subprocess.run(words, input=BAD, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 0 and "recorded" not in ran.stderr and "overridden" in ran.stderr


def test_submissions_about_which_nobody_asked_are_audited_and_counted(start: Start) -> None:
    checker = start()
    checker.ask(GOOD, "user=1&unasked=2001:3,2002:1,x:,:4,bad")
    lost = [(line.get("user"), line["submissions"]) for line in checker.lines() if "submissions" in line]
    assert lost == [("2001", 3), ("2002", 1), ("", 4)]
    assert "not checked: 8" in checker.send(b"GET / HTTP/1.1\r\n\r\n")
