"""A fix changes only named files, and a report never replaces a file that a user wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
OLD = (EXAMPLES / "mindformers" / "run_llama2_7b.yaml").read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def preflight(*words: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "preflight", *words]
    return subprocess.run(run, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The example as `fix` leaves it."""
    path = tmp_path_factory.mktemp("fixed") / "run.yaml"
    path.write_text(OLD, encoding="utf-8")
    preflight("fix", str(path))
    new = path.read_text(encoding="utf-8")
    assert new != OLD
    return new


@pytest.mark.parametrize("named", [".", "link.yaml"])
def test_a_link_out_of_the_tree(project: Path, tmp_path: Path, named: str, fixed: str) -> None:
    outside = tmp_path / "private.yaml"
    outside.write_text(OLD, encoding="utf-8")
    (project / "link.yaml").symlink_to("../private.yaml")
    ran = preflight("fix", named)
    assert outside.read_text(encoding="utf-8") == OLD
    assert (
        "with --follow" in ran.stdout and "link.yaml is outside the named paths" in ran.stdout and ran.returncode == 1
    )
    assert preflight("fix", named, "--diff").stdout == "", "there is nothing that it would change"
    preflight("fix", named, "--follow")
    assert outside.read_text(encoding="utf-8") == fixed and (project / "link.yaml").is_symlink()


def test_a_link_to_a_folder_out_of_the_tree(project: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "run.yaml").write_text(OLD, encoding="utf-8")
    (project / "configs").symlink_to("../elsewhere", target_is_directory=True)
    preflight("fix", ".")
    assert (tmp_path / "elsewhere" / "run.yaml").read_text(encoding="utf-8") == OLD


def test_a_link_within_the_tree(project: Path, fixed: str) -> None:
    (project / "v3.yaml").write_text(OLD, encoding="utf-8")
    (project / "current.yaml").symlink_to("v3.yaml")
    preflight("fix", "current.yaml")
    assert (project / "v3.yaml").read_text(encoding="utf-8") == fixed and (project / "current.yaml").is_symlink()


@pytest.mark.parametrize(
    ("name", "written"), [("../other.yaml", False), ("{tmp}/other.yaml", False), ("other.yaml", True)]
)
def test_a_config_that_a_config_names(project: Path, tmp_path: Path, name: str, written: bool) -> None:
    other = (project if written else tmp_path) / "other.yaml"
    other.write_text(OLD, encoding="utf-8")
    (project / "run.yaml").write_text(f"base_config: {name.format(tmp=tmp_path)}\nrunner_config: {{epochs: 2}}\n")
    ran = preflight("fix", "run.yaml")
    assert (other.read_text(encoding="utf-8") == OLD) is not written, ran
    assert ("with --follow" in ran.stdout) is not written
    preflight("fix", "run.yaml", "--follow")
    assert other.read_text(encoding="utf-8") != OLD


def test_a_name_among_several_is_refused(project: Path) -> None:
    (project / "run.yaml").write_text(OLD, encoding="utf-8")
    os.link("run.yaml", "backup.yaml")
    ran = preflight("fix", "run.yaml")
    assert ran.returncode in (1, 2) and "run.yaml: has other names (hard links)" in ran.stderr
    assert (project / "run.yaml").read_text(encoding="utf-8") == OLD and os.path.samefile("run.yaml", "backup.yaml")


def test_layouts_are_not_written_through_a_link(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "private.yaml"
    shutil.copy(EXAMPLES / "megatron" / "sound_8b.yaml", outside)
    before = outside.read_bytes()
    (project / "link.yaml").symlink_to("../private.yaml")
    ran = preflight("layouts", "link.yaml", "--world-size", "32", "--device", "A100-80GB", "--apply", "2")
    assert outside.read_bytes() == before and "link.yaml" in ran.stderr and ran.returncode == 2, ran


@pytest.mark.parametrize("words", [["-o", "{}"], ["-f", "json:{}"], ["-f", "text", "-f", "sarif:{}"]])
@pytest.mark.parametrize(
    "target", ["run.yaml", "./run.yaml", "link.txt", "other.sh", "hard.txt", "base.txt", "preflight.toml"]
)
def test_a_report_replaces_nothing_that_was_read(project: Path, target: str, words: list[str]) -> None:
    (project / "run.yaml").write_text("base_config: base.txt\n" + OLD, encoding="utf-8")
    (project / "base.txt").write_text("seed: 1\n")
    (project / "other.sh").write_text("echo not checked\n")
    (project / "preflight.toml").write_text("world-size = 8\n")
    (project / "link.txt").symlink_to("run.yaml")
    os.link("run.yaml", "hard.txt")
    before = {path.name: path.read_bytes() for path in project.iterdir()}
    ran = preflight("check", "run.yaml", *(word.format(target) for word in words))
    assert ran.returncode == 2 and f"{target.removeprefix('./')}: " in ran.stderr, ran
    assert {path.name: path.read_bytes() for path in project.iterdir()} == before


@pytest.mark.parametrize("command", ["show", "memory", "layouts", "baseline"])
def test_no_command_writes_over_a_config(project: Path, command: str) -> None:
    (project / "run.yaml").write_text(OLD, encoding="utf-8")
    ran = preflight(command, "run.yaml", "--device", "A100-80GB", "-o", "run.yaml")
    assert ran.returncode == 2 and "is never replaced by a report" in ran.stderr
    assert (project / "run.yaml").read_text(encoding="utf-8") == OLD


def test_a_report_is_written_in_one_step(project: Path, tmp_path: Path) -> None:
    """A reader of the old report can continue; the new one has the permissions of the old one."""
    (project / "run.yaml").write_text(OLD, encoding="utf-8")
    (project / "report.txt").write_text("old")
    (project / "report.txt").chmod(0o640)
    with open(project / "report.txt", encoding="utf-8") as reader:
        assert preflight("check", "run.yaml", "-o", "report.txt").returncode == 1
        assert reader.read() == "old"
    assert (
        "run.yaml:" in (project / "report.txt").read_text() and (project / "report.txt").stat().st_mode & 0o777 == 0o640
    )
    assert sorted(path.name for path in project.iterdir()) == ["report.txt", "run.yaml"]


def test_a_report_goes_to_a_pipe_or_a_device(project: Path) -> None:
    (project / "run.yaml").write_text(OLD, encoding="utf-8")
    assert preflight("check", "run.yaml", "-o", "/dev/null").returncode == 1
    assert "run.yaml:" in preflight("check", "run.yaml", "-o", "/dev/stdout").stdout


def test_a_report_that_cannot_be_written_leaves_nothing(project: Path) -> None:
    (project / "run.yaml").write_text(OLD, encoding="utf-8")
    for target in ("nowhere/report.txt", "."):
        ran = preflight("check", "run.yaml", "-o", target)
        assert ran.returncode == 2 and f"{target}: cannot be written" in ran.stderr
    assert [path.name for path in project.iterdir()] == ["run.yaml"]
