"""Labelled runs of a tree, next to the values that preflight reads in its source."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from upstream.agreement import Run, compared, runs
from upstream.repositories import Repositories

sys.path.insert(0, str(Path(__file__).parents[1] / "program"))
from trainer import write_tree

VALIDATE = """
import torch
assert args.width % 2 == 0, "odd"
assert args.heads != 3 or torch.cuda.get_device_capability()[0] >= 10, "too old"
"""
TRAINING = """
from megatron.training.global_vars import get_args
def pretrain(model):
    pass
def get_optimizer_param_scheduler(optimizer):
    assert get_args().width < 100, "no schedule"
"""
SCRIPT = "from megatron.training.training import pretrain\nif __name__ == '__main__':\n    pretrain(None)\n"
FILES = {
    "megatron/training/training.py": TRAINING,
    "megatron/training/global_vars.py": "_GLOBAL_ARGS = None\ndef get_args():\n    return _GLOBAL_ARGS\n",
    "megatron/training/initialize.py": "def _initialize_distributed():\n    pass\n",
    "megatron/core/package_info.py": "MAJOR = 0\nMINOR = 16\nPATCH = 0\nPRE_RELEASE = ''\n",
    "pretrain_gpt.py": SCRIPT,
}
ROWS: list[tuple[list[str], bool, str]] = [
    (["--width", "4"], True, "agree"),
    (["--width", "5"], False, "agree"),
    (["--width", "7"], True, "false"),
    (["--width", "6"], False, "missed"),
    (["--width", "100"], True, "beyond"),
    (["--width", "100", "--fast"], False, "agree"),
]


def lines(folder: Path, rows: list[tuple[list[str], bool, str]], known: bool = True) -> list[str]:
    """The output for these runs of an available tree."""
    write_tree(folder / "0.16.0", VALIDATE, files=FILES)
    labels = folder / "labels.jsonl"
    made: list[dict[str, Any]] = [
        {"id": str(at), "release": "0.16.0", "args": args, "world_size": 8, "env": {}, "accept": accept}
        for at, (args, accept, _) in enumerate(rows)
    ]
    labels.write_text("\n".join(map(json.dumps, made)))
    return list(compared(runs(labels), folder, Repositories(), known, 10))


def test_each_kind_of_disagreement_is_counted(tmp_path: Path) -> None:
    found = lines(tmp_path, ROWS)
    assert found[-1] == "0.16.0: 3 agree, 1 false, 1 missed, 1 beyond of 6"
    told = {line.split(":")[0].strip(): line for line in found[:-1]}
    assert "odd" in told["false"] and "no schedule" in told["beyond"] and "(0.16.0)" in told["missed"]


def test_a_machine_that_is_not_stated_leaves_open_what_it_decides(tmp_path: Path) -> None:
    rows: list[tuple[list[str], bool, str]] = [(["--heads", "3"], False, "")]
    assert lines(tmp_path / "known", rows)[-1] == "0.16.0: 1 agree of 1"
    assert lines(tmp_path / "unknown", rows, known=False)[-1] == "0.16.0: 1 undecided of 1"


def test_a_tree_that_is_not_here_is_named(tmp_path: Path) -> None:
    run = Run("1", "SOME+Fork", ("pretrain_gpt.py",), (), 8, True)
    assert "left out" in next(compared([run], tmp_path, Repositories(), True, 1))
