"""One measured step on a team's cluster scales every estimate, and is shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from preflight.cli import run

EXAMPLE = Path(__file__).parents[2] / "examples/megatron/sound_8b.yaml"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE, tmp_path / "run.yaml")
    return tmp_path / "preflight.toml"


def settings(file: Path, measured: str) -> None:
    file.write_text(f'device = "h100"\nworld-size = 32\n{measured}')


def shown(capsys: pytest.CaptureFixture[str]) -> float:
    assert run(["show", "run.yaml", "-f", "json"]) == 0
    return float(json.loads(capsys.readouterr().out)["runs"][0]["step_time"]["seconds"])


def test_a_measured_step_shifts_estimates_and_layouts(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(project, "")
    before = shown(capsys)
    settings(project, f'[measured]\nconfig = "run.yaml"\nstep-seconds = {before / 2:.6f}\n')
    assert shown(capsys) == pytest.approx(before / 2, rel=1e-3)
    assert run(["show", "run.yaml"]) == 0
    assert "divided by 2.00 as measured" in capsys.readouterr().out
    assert run(["layouts", "run.yaml", "--show", "1", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["current"]["seconds"] == pytest.approx(before / 2, rel=1e-3)
    assert run(["layouts", "run.yaml", "--show", "1"]) == 0
    assert "times are divided by 2.00" in capsys.readouterr().out


def test_a_measured_run_without_a_figure_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings(project, '[measured]\nconfig = "run.yaml"\n')
    assert run(["show", "run.yaml"]) == 2
    assert "measured" in capsys.readouterr().err
    settings(project, '[measured]\nconfig = "run.yaml"\nstep-seconds = 0\n')
    assert run(["show", "run.yaml"]) == 2
