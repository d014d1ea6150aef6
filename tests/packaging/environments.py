"""Fresh environments for tests of installation. They need a package index, or a configuration of pip that names one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME", "NO_COLOR", "FORCE_COLOR")
}


def run(words: Sequence[str | Path], cwd: Path, code: int | None = 0) -> str:
    """Run a program; its output, both streams. Raises AssertionError for another exit code."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=CLEAN,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert code is None or done.returncode == code, (
        f"{' '.join(map(str, words))} gave {done.returncode}:\n{done.stdout[-4000:]}"
    )
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
        """The contents of site-packages: import names and their metadata."""
        (site,) = self.folder.glob("lib/python*/site-packages")
        return {entry.name for entry in site.iterdir()}
