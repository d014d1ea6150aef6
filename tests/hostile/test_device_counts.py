"""Layout searches are limited: an impossible number of devices is rejected immediately."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bounded import COMMAND

pytestmark = pytest.mark.slow
HUGE = "9999999999999999999"
TEXT = f"{COMMAND} --tensor-model-parallel-size 3 --global-batch-size 8\n"


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "run.sh").write_text(TEXT)
    command = [sys.executable, "-m", "preflight", *words, "run.sh"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("command", [["layouts"], ["check", "--suggest"], ["fix", "--unsafe", "--diff"], ["memory"]])
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--world-size", HUGE], f"--world-size must be at most 1,000,000, not {HUGE}"),
        (["--world-size", "1000001"], "--world-size must be at most 1,000,000, not 1000001"),
        (["--nodes", HUGE], f"--nodes must be at most 1,000,000, not {HUGE}"),
        (
            ["--nodes", "200000", "--devices-per-node", "8"],
            "200000 nodes with 8 devices each have 1600000 devices, more than the limit of 1,000,000",
        ),
    ],
)
def test_options(tmp_path: Path, command: list[str], options: list[str], why: str) -> None:
    ran = call(tmp_path, *command, *options)
    assert ran.returncode == 2 and why in ran.stderr


@pytest.mark.parametrize("numbers", [f"8,{HUGE}", "9" * 5_000])
def test_numbers_of_devices_to_compare(tmp_path: Path, numbers: str) -> None:
    ran = call(tmp_path, "layouts", "--scale", numbers)
    assert ran.returncode == 2 and "at most 1,000,000 devices" in ran.stderr


def test_a_count_in_a_script(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(TEXT)
    ran = call(tmp_path, "layouts")
    (tmp_path / "more.sh").write_text(TEXT.replace("torchrun", "torchrun --nnodes 999999999"))
    command = [sys.executable, "-m", "preflight", "layouts", "more.sh"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert "1,000,000 devices at most, but the job has 7999999992" in ran.stdout + ran.stderr


def test_a_million_is_searched(tmp_path: Path) -> None:
    assert call(tmp_path, "check", "--world-size", "1000000").returncode == 1
