"""`preflight gate` under attack: deadlines, rules that are final, input without an end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from clock import FOREVER
from hard import PIPELINE

pytestmark = pytest.mark.slow


def test_the_command_keeps_its_deadline_in_c_code(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(PIPELINE)
    words = [sys.executable, "-m", "preflight", "gate", "--script", "a.sh", "--timeout", "1", "--audit", "log"]
    begin = time.monotonic()
    ran = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=FOREVER, check=False)
    assert ran.returncode in (2, 3) and time.monotonic() - begin < FOREVER / 2, ran
    data = json.loads(ran.stdout)
    assert (data["verdict"], data["exit"]) == ("unknown", ran.returncode) and data["problem"]
    assert json.loads((tmp_path / "log").read_text())["exit"] == ran.returncode


def test_the_command_refuses_what_it_could_not_judge_where_rules_are_final(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(PIPELINE)
    words = [sys.executable, "-m", "preflight", "gate", "--script", "a.sh", "--timeout", "1", "--final", "device-count"]
    assert subprocess.run(words, capture_output=True, cwd=tmp_path, timeout=FOREVER, check=False).returncode == 1


@pytest.mark.parametrize("option", ["--script", "--manifest", "--allocation"])
def test_a_device_that_never_ends_is_refused(tmp_path: Path, option: str) -> None:
    words = [sys.executable, "-m", "preflight", "gate", option, "/dev/zero"]
    limited = ["prlimit", f"--as={1024**3}", *words]
    ran = subprocess.run(limited, capture_output=True, text=True, input="true\n", timeout=FOREVER, check=False)
    assert ran.returncode == 2 and "is longer than" in ran.stderr, ran.stderr
