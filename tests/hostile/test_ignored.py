"""Untrusted `.gitignore` rules: git reads them within limits, and otherwise nothing is ignored."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest
from bounded import GRAPH
from clock import FOREVER

pytestmark = pytest.mark.skipif(shutil.which("git") is None or os.name == "nt", reason="needs git and pipes")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "run.yaml").write_text(GRAPH)
    return tmp_path


def checked(folder: Path) -> str:
    words = [sys.executable, "-m", "preflight", "check", ".", "--exit-zero", "--no-cache"]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return ran.stdout


def test_rules_hold(project: Path) -> None:
    (project / "other.yaml").write_text(GRAPH)
    (project / ".gitignore").write_text("other.yaml\n")
    assert " in 1 file" in checked(project)


@pytest.mark.parametrize("name", [".gitignore", ".git/info/exclude"])
def test_rules_that_are_no_regular_file_make_nobody_wait(project: Path, name: str) -> None:
    (project / name).unlink(missing_ok=True)
    (project / name).parent.mkdir(exist_ok=True)
    os.mkfifo(project / name)
    assert " in 1 file" in checked(project)


def test_rules_without_end_are_not_read(project: Path) -> None:
    (project / ".gitignore").write_text("*.yaml\n" * 100_000)
    assert " in 1 file" in checked(project)


@pytest.mark.slow
def test_a_pattern_that_takes_without_end_ends(project: Path) -> None:
    (project / ("a" * 200 + ".yaml")).write_text(GRAPH)
    (project / ".gitignore").write_text("*a" * 60 + "b\n" + "**/a*" * 40 + "b\n")
    start = monotonic()
    assert " in 2 files" in checked(project)
    assert monotonic() - start < FOREVER


def test_a_config_that_names_a_pipe_for_rules_makes_nobody_wait(project: Path) -> None:
    (project / ".gitignore").write_text("x\n")
    os.mkfifo(project / "pipe")
    subprocess.run(["git", "config", "core.excludesFile", str(project / "pipe")], cwd=project, check=True)
    assert " in 1 file" in checked(project)
