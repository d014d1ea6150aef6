"""Writes the Lua files next to slurm.conf: filled in, checked by a Lua compiler if available, then replaced
atomically."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from preflight.source.source_file import InputError
from preflight.source.writing import write_file

NAMES = ("job_submit", "cli_filter")
COMPILERS = ("luac5.1", "luac", "luac5.3", "luac5.4")


def fill(name: str, values: Mapping[str, object]) -> str:
    """A Lua file with its placeholders filled in."""
    text = files("preflight.gate").joinpath("slurm", f"{name}.lua").read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace(f"@{key}@", _lua(value))
    return text


def _lua(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{value:g}"
    return str(value).replace("\\", "\\\\").replace('"', '\\"')


def verify(text: str) -> str:
    """The error of a Lua compiler for a text; "" if there is none, or no compiler."""
    compiler = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if compiler is None:
        return ""
    ran = subprocess.run([compiler, "-p", "-"], input=text, capture_output=True, text=True, timeout=10, check=False)
    return ran.stderr.strip() if ran.returncode else ""


def install(folder: Path, name: str, *, socket: Path, seconds: float, open_on_failure: bool) -> Path:
    """Write one Lua file into the folder of slurm.conf. Raises InputError; a broken file never replaces a good one."""
    if not (folder / "slurm.conf").is_file():
        raise InputError("there is no slurm.conf in this folder", str(folder))
    values = {
        "CURL": shutil.which("curl") or "/usr/bin/curl",
        "KILL": shutil.which("timeout") or "/usr/bin/timeout",
        "SOCKET": socket,
        "SECONDS": seconds,
        "OPEN": open_on_failure,
        "PREFLIGHT": Path(sys.executable).with_name("preflight"),
    }
    text = fill(name, values)
    if problem := verify(text):
        raise InputError(f"the generated file is not valid Lua: {problem}", name)
    target = folder / f"{name}.lua"
    if target.exists() and "preflight" not in target.read_text(encoding="utf-8", errors="replace"):
        raise InputError("already exists and was not created by preflight; merge the two files by hand", str(target))
    write_file(target, text.encode("utf-8"), mode=0o644)
    return target
