"""Fixtures for tests of installation."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from environments import ROOT, Environment, run


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "venv")


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of the working tree as a repository of one commit: as git would publish it."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a checkout")
    folder = tmp_path_factory.mktemp("checkout") / "preflight"
    files = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT).split("\0")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for words in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        ["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "All"],
    ):
        run(["git", *words], folder)
    return folder
