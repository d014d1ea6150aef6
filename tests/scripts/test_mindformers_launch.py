"""Launches of run_mindformer.py: the named config is read, and values that the launch overrides point to the script."""

from __future__ import annotations

from pathlib import Path

import pytest

import preflight
from preflight import Report

CONFIG = """\
run_mode: 'train'
use_parallel: True
parallel:
  parallel_mode: 1
parallel_config:
  data_parallel: 2
  model_parallel: 2
  pipeline_stage: 1
  micro_batch_num: 1
runner_config:
  batch_size: 1
  epochs: 1
context:
  mode: 0
trainer:
  type: CausalLanguageModelingTrainer
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(CONFIG)
    return tmp_path


def check(folder: Path, command: str) -> Report:
    (folder / "run.sh").write_text(command + "\n")
    return preflight.check("run.sh", target="mindformers@1.5.0")


def found(report: Report, rule: str) -> list[tuple[str, int, int]]:
    return [(f.path, f.line, f.column) for f in report.findings if f.rule == rule]


def test_a_fault_of_the_config_points_at_the_config(folder: Path) -> None:
    report = check(folder, 'bash scripts/msrun_launcher.sh "run_mindformer.py --config run.yaml" 8')
    assert report.plan is not None and report.plan.layout.tensor.raw == 2
    assert found(report, "device-count") == [("run.yaml", 6, 18)]


def test_an_option_of_the_launch_wins_and_is_where_the_fault_is(folder: Path) -> None:
    options = "--run_mode finetune --parallel_config.data_parallel $DP"
    command = f'DP=3\nbash scripts/msrun_launcher.sh "python run_mindformer.py --config run.yaml \\\n  {options}" 8'
    report = check(folder, command)
    assert report.plan is not None and report.plan.layout.data.raw == 3
    assert found(report, "device-count") == [("run.sh", 1, 4)]


def test_a_launch_that_fits_is_silent(folder: Path) -> None:
    report = check(
        folder,
        (
            "msrun --worker_num 4 --local_worker_num 4 run_mindformer.py --config run.yaml "
            "--parallel_config.data_parallel=2"
        ),
    )
    assert found(report, "device-count") == []


def test_a_config_that_is_not_there_is_unknown(folder: Path) -> None:
    report = check(folder, 'bash scripts/msrun_launcher.sh "run_mindformer.py --config other.yaml" 8')
    assert report.accepted and not report.crashes and report.jobs
