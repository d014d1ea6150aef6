"""What is written down of submissions, and what becomes of an override that cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from asking import Start
from test_gate import BAD, GOOD


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


def test_submissions_about_which_nobody_asked_are_audited_and_counted(start: Start) -> None:
    checker = start()
    checker.ask(GOOD, "user=1&unasked=2001:3,2002:1,x:,:4,bad")
    lost = [(line.get("user"), line["submissions"]) for line in checker.lines() if "submissions" in line]
    assert lost == [("2001", 3), ("2002", 1), ("", 4)]
    assert "not asked about: 8" in checker.send(b"GET / HTTP/1.1\r\n\r\n")
