"""`preflight layouts` as it is called: which files it takes, what it writes, what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from preflight.cli import run

EXAMPLE = Path(__file__).parents[2] / "examples/megatron/sound_8b.yaml"
DEVICES = ("--world-size", "32", "--device", "h100")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE, tmp_path / "run.yaml")
    return tmp_path / "run.yaml"


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(["layouts", *words])
    return code, *capsys.readouterr()


def test_a_layout_is_written_once_and_known_again(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ran(capsys, "run.yaml", *DEVICES, "--apply", "1", "--show", "1")
    assert (code, err) == (0, "preflight: run.yaml: layout 1 is written\n")
    written = config.read_text()
    assert written != EXAMPLE.read_text()
    code, _, err = ran(capsys, "run.yaml", *DEVICES, "--apply", "1", "--show", "1")
    assert (code, err) == (0, "preflight: run.yaml: has layout 1 already; nothing is written\n")
    assert config.read_text() == written


@pytest.mark.parametrize(
    "words",
    [
        ("--apply", "-1"),
        ("--show", "0"),
        ("--run", "0"),
        ("-f", "sarif"),
        ("-o", "none/out.txt"),
        ("--keep", "tensor=many"),
    ],
)
def test_wrong_usage_writes_nothing(config: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    code, out, err = ran(
        capsys, "run.yaml", *DEVICES, "--max", "tensor=1", "--max", "pipeline=1", "--max", "context=1", *words
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert config.read_text() == EXAMPLE.read_text()


def test_files_of_others_in_a_folder_pass_and_broken_configs_are_told_of(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--show", "1", "--max", "pipeline=1", "--max", "context=1")
    (config.parent / "chart.yaml").write_text("kind: [\n")
    code, out, err = ran(capsys, ".", *DEVICES, *few, "-f", "json")
    assert (code, [item["path"] for item in json.loads(out)["files"]], err) == (0, ["run.yaml"], "")
    (config.parent / "broken.yaml").write_text(EXAMPLE.read_text() + "last: [1\n")
    code, _, err = ran(capsys, ".", *DEVICES, *few)
    assert (code, err.startswith("preflight: broken.yaml:")) == (2, True)
    assert ran(capsys, "chart.yaml")[0] == 2


def test_the_table_says_whose_speed_is_assumed_and_where_nothing_is_left(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--world-size", "32", "--show", "1", "--max", "pipeline=1", "--max", "context=1")
    assert "no device is named" in ran(capsys, "run.yaml", *few)[1]
    assert "no device is named" not in ran(capsys, "run.yaml", *few, "--device", "h100")[1]
    code, out, _ = ran(capsys, "run.yaml", *few, "--keep", "tensor=3")
    assert (code, "left out" in out, "do --keep and --max leave any?" in out) == (1, False, True)
    code, out, _ = ran(capsys, "run.yaml", *few, "-o", "table.txt")
    assert (code, out) == (0, "")
    assert (config.parent / "table.txt").read_text().startswith("run.yaml: ")


def test_an_error_that_no_layout_cures_is_said_to_be_one(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text("".join(line for line in EXAMPLE.read_text().splitlines(keepends=True) if "--lr:" not in line))
    code, out, _ = ran(capsys, "run.yaml", *DEVICES, "--show", "1", "--max", "pipeline=1", "--max", "context=1")
    assert (code, "rule megatron/required-argument" in out, "preflight check shows what" in out) == (1, True, True)
