"""Runs of Megatron with the verdict of its real validators: the interpreter agrees."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from preflight.program.judge import Session, in_thread
from preflight.program.verdict import Budget, Machine, Program, Verdict

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT.parent / "shared" / "data" / "oracle"
REPOSITORY = Path(os.environ.get("PREFLIGHT_MEGATRON_REPOSITORY", ROOT.parent / "Megatron-LM"))
STATED = Machine({"torch": "2.8.0", "transformer-engine": "2.17"}, capability=(9, 0), devices=8)
LABELLED = ("parse", "validate", "config", "microbatches")
"""The stages that the labels run; the interpreter reads later ones too."""
RELEASES = [
    ("0.12.1", "megatron-releases-2"),
    ("0.19.0", "megatron-releases"),
]

pytestmark = [
    pytest.mark.skipif(not ROWS.is_dir(), reason="the labelled runs are not here"),
    pytest.mark.skipif(not REPOSITORY.is_dir(), reason="no repository of Megatron-LM is here"),
]


def tree(release: str, folder: Path) -> Path:
    """The Python files of a release."""
    archive = subprocess.run(
        ["git", "-C", str(REPOSITORY), "archive", f"core_v{release}", "--", "*.py"], capture_output=True
    )
    if archive.returncode:
        pytest.skip(f"the repository has no core_v{release}")
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def labelled(release: str, file: str, count: int) -> list[dict[str, Any]]:
    with gzip.open(ROWS / f"{file}.jsonl.gz", "rt") as stream:
        rows = [row for row in map(json.loads, stream) if row["release"] == release]
    return rows[:: max(1, len(rows) // count)]


def told(row: dict[str, Any], verdict: Verdict) -> str:
    """The result of the interpreter for the stages that the label covers."""
    refused = [one for one in verdict.refusals if one.stage in LABELLED]
    if any(one.certain for one in refused):
        return "refuses"
    return "undecided" if refused or verdict.outcome == "unread" else "accepts"


@pytest.mark.parametrize(("release", "file"), RELEASES)
@pytest.mark.parametrize("machine", [STATED, Machine()], ids=["machine stated", "machine unknown"])
def test_agrees_with_the_real_validators(release: str, file: str, machine: Machine, tmp_path: Path) -> None:
    root = tree(release, tmp_path)

    def run() -> Counter[tuple[bool, str]]:
        session = Session(Program("megatron", (str(root),)), machine, Budget())
        session.strict = True
        found: Counter[tuple[bool, str]] = Counter()
        for row in labelled(release, file, 12):
            env = {"CUDA_DEVICE_MAX_CONNECTIONS": "1", **{k: str(v) for k, v in (row.get("env") or {}).items()}}
            found[row["accept"], told(row, session.judge(row["args"], env, row["world_size"]))] += 1
        return found

    found = in_thread(run)
    assert not found[True, "refuses"] and not found[False, "accepts"], found
    undecided = found[True, "undecided"] + found[False, "undecided"]
    assert undecided <= (0.35 if machine == Machine() else 0.1) * sum(found.values()), found
