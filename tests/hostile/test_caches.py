"""A cache folder that others may have filled is neither trusted nor followed."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bounded import GRAPH

from preflight.source import cache_folder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="owners and rights are those of POSIX"),
]

BAD = GRAPH.replace("num_layers: 40", "num_layers: 42")
FORGED = "\x1b[2J\x1b]0;owned\x07"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose CI keeps its cache inside, as GitLab requires."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "run.yaml").write_text(BAD)
    time.sleep(0.15)  # a file that was just written is not remembered
    monkeypatch.setenv(cache_folder.VARIABLE, ".cache/preflight")
    monkeypatch.chdir(folder)
    return folder


def check(*more: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "preflight", "check", "run.yaml", *more]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def kept(project: Path) -> Path:
    (found,) = (project / ".cache/preflight/told").glob("*.json")
    return found


def test_what_is_kept_is_private_and_taken_again(project: Path) -> None:
    first = check()
    assert first.returncode == 1 and check().stdout == first.stdout
    for path in (project / ".cache/preflight").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_an_edited_report_is_not_believed(project: Path) -> None:
    first = check()
    text = kept(project).read_text()
    data = json.loads(text[text.index("{") :])
    data["told"][0] = [[*data["told"][0][0][:-1], FORGED]]
    for forged in (text[: text.index("{")] + json.dumps(data), json.dumps(data)):
        kept(project).write_text(forged)
        ran = check()
        assert (ran.returncode, ran.stdout) == (1, first.stdout)


def test_a_report_of_another_file_is_not_believed(project: Path) -> None:
    check()
    other = kept(project).read_text()
    (project / "run.yaml").write_text(GRAPH)
    time.sleep(0.15)
    shutil.rmtree(project / ".cache/preflight/told")
    sound = check()
    kept(project).write_text(other)
    assert check().stdout == sound.stdout


def test_a_cache_that_was_copied_with_its_secret_is_not_believed(project: Path) -> None:
    """A commit can bring every byte of a cache, also the secret; not the number and time that its file will get."""
    first = check()
    shutil.copytree(project / ".cache", project / "copy")
    shutil.rmtree(project / ".cache")
    shutil.move(project / "copy", project / ".cache")
    assert (project / ".cache/preflight" / cache_folder.SECRET).exists()
    name = f"told/{kept(project).name}"
    assert cache_folder.read(name) is None
    assert check().stdout == first.stdout and cache_folder.read(name) is not None


@pytest.mark.parametrize("table", ["preflight.rules", "preflight.rules.mindformers"])
def test_a_table_of_rules_names_no_module_of_others(project: Path, table: str) -> None:
    first = check()
    (project / "evil.py").write_text(f"open({str(project / 'ran')!r}, 'w')\n")
    for path in (project / ".cache/preflight").glob(f"{table}-*.json"):
        path.write_text(re.sub(rf'\["{table}\.\w+"', '["evil"', path.read_text()))
        assert '["evil"' in path.read_text()
    ran = check("--no-cache")
    assert (ran.returncode, ran.stdout) == (1, first.stdout) and not (project / "ran").exists()


def test_nothing_is_deleted_or_written_through_a_link(project: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o700)
    for name in ("thesis.tex", f"{'a' * 32}.json"):
        (precious / name).write_text("years of work")
        os.utime(precious / name, times=(0, time.time() - 90 * cache_folder.DAY))
    before = sorted(path.name for path in precious.iterdir())
    for link in (".cache/preflight/told", ".cache/preflight"):
        shutil.rmtree(project / ".cache", ignore_errors=True)
        (project / link).parent.mkdir(parents=True, mode=0o700)
        (project / link).symlink_to(precious, target_is_directory=True)
        assert check().returncode == 1
        assert sorted(path.name for path in precious.iterdir()) == before, link


def test_a_link_in_place_of_an_entry_is_not_followed(project: Path, tmp_path: Path) -> None:
    check()
    for path in [*(project / ".cache/preflight").rglob("*.json"), project / ".cache/preflight" / cache_folder.SECRET]:
        other = tmp_path / f"moved-{path.name}"
        shutil.move(path, other)
        path.symlink_to(other)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("moved-*")}
    assert check().returncode == 1
    assert {path.name: path.read_bytes() for path in tmp_path.glob("moved-*")} == before


@pytest.mark.parametrize("which", [".cache/preflight", ".cache/preflight/told"])
def test_a_folder_that_others_may_write_to_is_not_used(project: Path, which: str) -> None:
    first = check()
    for path in (project / ".cache/preflight/told").iterdir():
        path.unlink()
    (project / which).chmod(0o777)
    assert check().stdout == first.stdout and not list((project / ".cache/preflight/told").iterdir())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_somebody_else_is_not_used(project: Path) -> None:
    first = check()
    name = f"told/{kept(project).name}"
    assert cache_folder.read(name) is not None
    os.chown(project / ".cache/preflight/told", 12345, 12345)
    assert cache_folder.read(name) is None and check().stdout == first.stdout


def test_pipes_and_folders_in_place_of_entries(project: Path) -> None:
    first = check()
    for path in [*(project / ".cache/preflight").rglob("*.json"), project / ".cache/preflight" / cache_folder.SECRET]:
        path.unlink()
        os.mkfifo(path)
    assert check().stdout == first.stdout
    for path in list((project / ".cache/preflight").rglob("*.json")):
        path.unlink()
        path.mkdir()
    assert check().stdout == first.stdout
