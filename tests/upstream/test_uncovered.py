"""Refusals without a rule, on an artificial release with Megatron's options."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from upstream.__main__ import main
from upstream.uncovered import published

OPTIONS = (
    *("num-layers", "hidden-size", "num-attention-heads", "seq-length", "max-position-embeddings"),
    *("micro-batch-size", "train-iters", "lr", "seed", "log-interval", "eval-iters"),
)
ARGUMENTS = """
import argparse


def parse_args(extra_args_provider=None):
    return add_megatron_arguments(argparse.ArgumentParser()).parse_args()


def add_megatron_arguments(parser):
{options}
    parser.add_argument("--exit-signal-handler", action="store_true")
    return parser


def validate_args(args, defaults={{}}):
    assert args.hidden_size % args.num_attention_heads == 0
    assert args.log_interval < 100, f"{{args.log_interval}} is seldom"
    if args.exit_signal_handler and args.seed == 7:
        raise ValueError("an unlucky seed")
    return args


def core_transformer_config_from_args(args):
    pass
"""
DENSE = (
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
    "--max-position-embeddings 64 --micro-batch-size 1 --train-iters 1 --lr 1"
)
SCRIPT = f"#!/bin/bash\ntorchrun --nproc_per_node 8 pretrain_gpt.py {DENSE} --seed $SEED --seed 7 {{more}}\n"
TEST = "ENV_VARS:\n  A: 1\nMODEL_ARGS:\n  --num-layers: 2\n  --bf16: true\n  --fp16: false\n  --data-path: ${DATA}\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    added = "\n".join(f'    parser.add_argument("--{name}", type=int, default=1)' for name in OPTIONS)
    files = {
        "megatron/__init__.py": "",
        "megatron/training/__init__.py": "",
        "megatron/training/arguments.py": ARGUMENTS.format(options=added),
        "examples/one.sh": SCRIPT.format(more="--log-interval 10"),
        "examples/two.sh": SCRIPT.format(more="--log-interval 20"),
        "examples/three.sh": SCRIPT.format(more=""),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"], ["tag", "v1"]):
        subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
    return folder


def test_what_no_rule_tells_is_listed_by_the_runs_that_come_near(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["uncovered", "megatron@v1", "--repository", str(repository), "--count", "150", "--seed", "1"]
    assert main(words) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "megatron 0.20.0 at v1: 3 published runs, 3 of them accepted"
    assert told[1].endswith("refused at 3 places; at 2 of them not by a rule each time")
    places = [line for line in told if "arguments.py:" in line]
    assert [line.split()[0] for line in places] == ["3", "2"]
    assert "an unlucky seed" in places[0] and "is seldom" in places[1]
    assert "reads --exit-signal-handler --seed" in "\n".join(told)


def test_published_runs_of_scripts_and_functional_tests() -> None:
    runs = {run["id"]: run for run in published({"a.sh": SCRIPT.format(more=""), "b/model_config.yaml": TEST})}
    assert runs["a.sh"]["args"] == [*DENSE.split(), "--seed", "7"]
    assert runs["b/model_config.yaml"]["args"] == ["--num-layers", "2", "--bf16"]
    assert runs["b/model_config.yaml"]["env"] == {"A": "1"}


def test_a_framework_without_a_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uncovered", "mindformers@1.7.0"]) == 2
    assert "mindformers is none of" in capsys.readouterr().err
