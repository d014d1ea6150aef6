"""Fresh environments for tests of installation. They need a package index, or pip's own configuration of one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME", "NO_COLOR", "FORCE_COLOR")}


def run(words: Sequence[str | Path], cwd: Path, code: int | None = 0) -> str:
    """Run a program; its output, both streams. Raises AssertionError for another exit code."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=CLEAN, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert code is None or done.returncode == code, f"{' '.join(map(str, words))} gave {done.returncode}:\n{done.stdout[-4000:]}"
    return done.stdout


class Environment:
    """A virtual environment with nothing in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        run([sys.executable, "-m", "venv", folder], folder.parent)

    def pip(self, *words: str | Path, code: int | None = 0) -> str:
        return run([self.bin / "python", "-m", "pip", *words], self.folder, code)

    def preflight(self, *words: str | Path, cwd: Path | None = None, code: int | None = 0) -> str:
        return run([self.bin / "preflight", *words], cwd or self.folder, code)

    @property
    def packages(self) -> set[str]:
        """What lies in site-packages: import names and their metadata."""
        (site,) = self.folder.glob("lib/python*/site-packages")
        return {entry.name for entry in site.iterdir()}


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "venv")


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of the working tree as a repository of one commit: what git would give to others."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a checkout")
    folder = tmp_path_factory.mktemp("checkout") / "preflight"
    files = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT).split("\0")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "All"]):
        run(["git", *words], folder)
    return folder
