"""The same source makes the same wheel, byte for byte, wherever and whenever it is built."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from environments import ROOT

PARTS = ("preflight", "rules", "schemas", "docs/rules", "pyproject.toml", "README.md", "LICENSE")


@pytest.mark.slow
def test_two_builds_give_one_wheel(tmp_path: Path) -> None:
    hashes = []
    for number in (1, 2):
        source = tmp_path / f"source{number}"
        source.mkdir()
        for name in PARTS:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
            else:
                shutil.copy(ROOT / name, source / name)
        for path in source.rglob("*"):
            os.utime(path, (number * 10**9, number * 10**9))
        zone = {
            "TZ": ("UTC", "Asia/Tokyo")[number - 1],
            "PYTHONHASHSEED": str(number),
            "SOURCE_DATE_EPOCH": "1700000000",
        }
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path / f"dist{number}"), str(source)]
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **zone}, capture_output=True, text=True, check=False
        )
        if done.returncode and (
            "No module named build" in done.stderr or "Could not find a version" in done.stdout + done.stderr
        ):
            pytest.skip("wheels cannot be built here: the builder cannot be had")
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
        (wheel,) = (tmp_path / f"dist{number}").glob("*.whl")
        hashes.append((wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()))
    assert hashes[0] == hashes[1]
