"""Blocks of ```console in the README and the guide: runs their commands, compares or (as a script) rewrites their
output."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENGLISH = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*ENGLISH, ROOT / "README.zh.md", *sorted((ROOT / "docs" / "zh").glob("*.md"))]
"""The Chinese pages show the output of the English ones: tests/chinese.py compares them."""
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
RUN = [sys.executable, "-c", "from preflight.cli import main; main()"]


def played(block: str, folder: Path) -> str:
    """A block with the output that its commands really give. `$ echo $?` prints the last exit code."""
    lines, code = [], 0
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        lines.append(line)
        command = line[2:]
        if command == "echo $?":
            lines.append(str(code))
            continue
        name, *words = shlex.split(command)
        assert name == "preflight", f"only preflight is run: {command}"
        words += ["--timeout", "60"] if words[0] == "gate" else []  # a busy machine is too slow for the default
        environment = {**os.environ, "PYTHONPATH": "", "COLUMNS": "120"}
        done = subprocess.run(
            [*RUN, *words],
            cwd=folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        code = done.returncode
        lines += [text.rstrip() for text in done.stdout.rstrip("\n").splitlines()]
    return "\n".join(lines) + "\n"


def refreshed(page: Path) -> str:
    """The text of a page with all output as it is now."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        return BLOCK.sub(lambda match: played(match[1], Path(folder)), page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(refreshed(page), encoding="utf-8")
