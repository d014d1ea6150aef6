"""A command that is killed while it writes leaves whole files."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

KILLED_FIX = """
import os, signal, sys
step, when = sys.argv[1:3]
real = getattr(os, step)
def stop(*given, **named):
    if not any(".preflight" in str(part) for part in given):
        return real(*given, **named)
    if when == "after":
        real(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, step, stop)
from preflight.cli import run
run(["fix", "a.yaml", "b.yaml"])
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["chown", "stat", "chmod", "replace"])
def test_the_command_killed_while_it_writes_leaves_whole_files(step: str, when: str, tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "mindformers" / "run_llama2_7b.yaml"
    old = example.read_text(encoding="utf-8")
    for name in ("a.yaml", "b.yaml", "whole.yaml"):
        (tmp_path / name).write_text(old, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "preflight", "fix", "whole.yaml"], cwd=tmp_path, capture_output=True, check=False
    )
    new = (tmp_path / "whole.yaml").read_text(encoding="utf-8")
    assert new != old
    done = subprocess.run(
        [sys.executable, "-c", KILLED_FIX, step, when], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == (new if (step, when) == ("replace", "after") else old)
    assert (tmp_path / "b.yaml").read_text(encoding="utf-8") == old
