"""`preflight migrate`: what another release changes for a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from preflight.cli import run

SCRIPT = """\
torchrun --nproc-per-node 8 pretrain_gpt.py \\
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 \\
  --micro-batch-size 1 --global-batch-size 64 {more} \\
  --train-samples 100000 --lr 1e-4 --bf16 --tokenizer-type NullTokenizer --vocab-size 32000 --mock-data
"""


def migrate(tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, *words: str) -> tuple[int, str]:
    path = tmp_path / "run.sh"
    path.write_text(SCRIPT.format(more=more), encoding="utf-8")
    code = run(["migrate", str(path), *words])
    return code, capsys.readouterr().out.replace(str(path), "run.sh")


def test_an_option_that_goes_is_an_error_at_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--target", "megatron@0.12.1", "--to", "megatron@0.20.0")
    code, out = migrate(tmp_path, capsys, "--use-legacy-models", *words)
    assert out.startswith("run.sh: megatron@0.12.1 -> megatron@0.20.0\n")
    assert code == 1
    assert "run.sh:3:47: error: megatron 0.20.0 has no option --use-legacy-models" in out


def test_a_ramp_of_the_batch_is_lost_on_the_way_to_0_19(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--target", "megatron@0.16.0", "--to", "megatron@0.19.0")
    code, out = migrate(tmp_path, capsys, "--rampup-batch-size 8 8 1000", *words)
    assert code == 0
    assert "run.sh:3:67: warning: --rampup-batch-size has no effect in this release" in out
    assert "    --data-parallel-sharding-strategy: no_shard becomes optim_grads_params\n" in out


def test_a_default_that_says_the_same_in_other_words_is_not_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--target", "megatron@0.14.0", "--to", "megatron@0.19.0")
    _, out = migrate(tmp_path, capsys, "", *words)
    assert "becomes" in out
    assert "None becomes False" not in out
    assert "wandb" not in out


def test_an_option_that_is_newer_is_an_error_on_the_way_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--target", "megatron@0.20.0", "--to", "megatron@0.10.0", "-f", "json")
    code, out = migrate(tmp_path, capsys, "--cuda-graph-impl none", *words)
    (found,) = json.loads(out)["runs"]
    assert code == 1
    assert ("unknown-flag", "error") in [(one["rule"], one["severity"]) for one in found["new"]]
    assert (found["from"], found["to"]) == ("megatron@0.20.0", "megatron@0.10.0")


def test_a_run_of_another_framework_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.sh"
    path.write_text(SCRIPT.format(more=""), encoding="utf-8")
    assert run(["migrate", str(path), "--to", "mindformers@1.5.0"]) == 2
    assert "is a run of megatron@0.20.0, not of mindformers" in capsys.readouterr().err


def test_the_checks_of_later_releases_say_in_which_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "--since", "megatron@0.16"]) == 0
    rows = {line.split("megatron/")[1].split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert rows["gated-experts-with-local-graphs"].startswith("0.17.0 only ")
    assert rows["rollouts-counted-twice"].startswith("0.17.0 to 0.18.0 ")
    assert rows["hybrid-pattern"].startswith("0.17.0  ")


def test_it_speaks_chinese_to_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--target", "megatron@0.16.0", "--to", "megatron@0.19.0", "--lang", "zh")
    code, out = migrate(tmp_path, capsys, "--rampup-batch-size 8 8 1000", *words)
    assert code == 0
    assert "run.sh:3:67: 警告: --rampup-batch-size 在该版本中不生效" in out
    assert "    --data-parallel-sharding-strategy：no_shard 变为 optim_grads_params\n" in out
    assert "个默认值有变化：\n" in out
