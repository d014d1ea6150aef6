"""`--set NAME=VALUE` overrides an argument or a variable of a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness import Cli

SCRIPT = """MICRO=$1
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \\
  --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size $MICRO --global-batch-size 64 --bf16 --lr 1e-4 \\
  --train-iters 10 --tokenizer-type HuggingFaceTokenizer --tokenizer-model $TOK --tensor-model-parallel-size ${TP:-1}
"""
YAML = """
run_mode: train
use_parallel: True
parallel_config: {data_parallel: 8, model_parallel: 1, pipeline_stage: 1}
model:
  model_config: {type: LlamaConfig, num_layers: 4, hidden_size: 512, num_heads: 8, seq_length: 1024}
"""


def values(cli: Cli, path: Path, *options: str) -> dict[str, Any]:
    printed = cli("show", str(path), "-f", "json", *options).out
    return {name: value["value"] for name, value in json.loads(printed)["runs"][0]["values"].items()}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "run.sh"
    path.write_text(SCRIPT)
    return path


def test_variables_hold_whatever_the_script_assigns(real_cli: Cli, script: Path) -> None:
    found = values(real_cli, script, "--set", "MICRO=4", "--set", "TP=2")
    assert (found["batch.micro"], found["layout.tensor"], found["batch.count"]) == (4, 2, 4)


def test_arguments_hold_whatever_is_typed(real_cli: Cli, script: Path) -> None:
    found = values(real_cli, script, "--set", "vocab_size=32000", "--set", "num-layers=12", "--set", "MICRO=1")
    assert (found["model.vocab"], found["model.layers"]) == (32000, 12)


def test_settings_say_it_once_and_the_call_wins(real_cli: Cli, script: Path) -> None:
    script.with_name("preflight.toml").write_text("[set]\nMICRO = 2\nvocab_size = 32000\nswiglu = true\n")
    found = values(real_cli, script, "--set", "vocab_size=64000")
    assert (found["batch.micro"], found["model.vocab"], found["model.gated"]) == (2, 64000, True)


def test_a_setting_of_a_config_is_named_by_its_last_part(real_cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(YAML)
    told = ("--set", "num_layers=6", "--set", "vocab_size=32000")
    found = values(real_cli, path, "--world-size", "8", *told)
    assert (found["model.layers"], found["model.vocab"]) == (6, 32000)


def test_what_is_set_is_checked_like_what_is_typed(real_cli: Cli, script: Path) -> None:
    found = real_cli("check", str(script), "--set", "MICRO=3", "--select", "batch-not-divisible")
    assert "batch" in found.out and found.code == 1


def test_a_value_that_an_argument_does_not_take_is_refused(real_cli: Cli, script: Path) -> None:
    found = real_cli("check", str(script), "--set", "micro_batch_size=many")
    assert (found.code, "--set micro_batch_size=many: --micro-batch-size does not accept this value" in found.err) == (
        2,
        True,
    )
    assert real_cli("check", str(script), "--set", "micro_batch_size").code == 2
