"""Runs a script under bash with every launcher replaced by a recorder, to see which commands it really starts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from clock import FOREVER

LAUNCHERS = ("torchrun", "msrun", "python", "python3", "srun", "mpirun", "deepspeed", "accelerate")
RECORDER = """#!/bin/bash
{ printf '%s\\0' "${0##*/}" "$@"; printf '\\1\\0'; } >> "$RECORD"
"""


def commands(
    script: Path, folder: Path, arguments: tuple[str, ...] = (), environment: dict[str, str] | None = None
) -> list[list[str]]:
    """The command lines that bash starts for a script, in order."""
    tools, record = folder / "tools", folder / "record"
    tools.mkdir(exist_ok=True)
    for name in LAUNCHERS:
        (tools / name).write_text(RECORDER)
        (tools / name).chmod(0o755)
    record.write_bytes(b"")
    known = {
        "PATH": f"{tools}:/usr/bin:/bin",
        "RECORD": str(record),
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        **(environment or {}),
    }
    subprocess.run(
        ["bash", str(script), *arguments],
        cwd=script.parent,
        env=known,
        timeout=FOREVER,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return [text.split("\0")[:-1] for text in os.fsdecode(record.read_bytes()).split("\1\0")[:-1]]
