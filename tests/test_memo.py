"""Cached reports are reused only while none of their inputs has changed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import Ran

from preflight.checking.configured_checker import Checker
from preflight.cli import run
from preflight.cli.cached_and_parallel_checks import FRESH, VARIABLE
from preflight.source import cache_folder

CONFIG = """\
use_parallel: True
run_mode: train
parallel_config: {data_parallel: 2, model_parallel: 3}
model: {model_config: {type: LlamaConfig, num_layers: 2, num_heads: 4, hidden_size: 8}}
"""
BASED = "base_config: base.yaml\nrunner_config: {epochs: 2}\n"


class Call:
    """Runs `preflight check`, and counts the files that were really checked."""

    def __init__(self, checked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        self.checked, self.capsys = checked, capsys

    def __call__(self, *words: str) -> Ran:
        self.checked.clear()
        return Ran(run(["check", *words]), *self.capsys.readouterr())


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    checked: list[str] = []
    real: Callable[..., object] = Checker.check_file

    def counted(self: Checker, item: object, **more: object) -> object:
        checked.append(str(getattr(item, "name", "")))
        return real(self, item, **more)

    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(Checker, "check_file", counted)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yield Call(checked, capsys)


def write(name: str, text: str) -> None:
    """Write a file, and wait until it is old enough to be remembered."""
    Path(name).write_text(text, encoding="utf-8")
    time.sleep(1.5 * FRESH / 1e9)


def test_the_second_time_the_same_is_told_without_checking(check: Call) -> None:
    write("run.yaml", CONFIG)
    first = check("run.yaml")
    assert "error" in first.out and first.code == 1 and check.checked == ["run.yaml"]
    assert check("run.yaml") == first and check.checked == []


def test_a_changed_file_is_checked_and_the_others_are_not(check: Call) -> None:
    for name in ("a.yaml", "b.yaml", "c.yaml"):
        Path(name).write_text(CONFIG, encoding="utf-8")
    write("d.yaml", CONFIG)
    check(".")
    write("b.yaml", CONFIG.replace("model_parallel: 3", "model_parallel: 2"))
    mended = check(".")
    assert check.checked == ["b.yaml"]
    assert "b.yaml:3" not in mended.out and "c.yaml:3" in mended.out
    assert mended.out == check(".", "--no-cache").out


def test_a_change_that_leaves_size_and_date_is_seen(check: Call) -> None:
    write("run.yaml", CONFIG)
    old = os.stat("run.yaml")
    check("run.yaml")
    Path("run.yaml").write_text(CONFIG.replace("model_parallel: 3", "model_parallel: 2"), encoding="utf-8")
    os.utime("run.yaml", ns=(old.st_atime_ns, old.st_mtime_ns))
    check("run.yaml")
    assert check.checked == ["run.yaml"]


def test_a_file_that_was_just_written_is_not_remembered(check: Call) -> None:
    Path("run.yaml").write_text(CONFIG, encoding="utf-8")
    check("run.yaml")
    check("run.yaml")
    assert check.checked == ["run.yaml"]


def test_a_file_that_another_one_names_counts(check: Call) -> None:
    write("run.yaml", BASED)
    without = check("run.yaml")
    write("base.yaml", CONFIG)
    first = check("run.yaml")
    assert check.checked == ["run.yaml"] and first != without
    check("run.yaml")
    assert check.checked == []
    write("base.yaml", CONFIG.replace("model_parallel: 3", "model_parallel: 2"))
    assert check("run.yaml") != first and check.checked == ["run.yaml"]
    os.unlink("base.yaml")
    assert check("run.yaml") == without and check.checked == ["run.yaml"]


def test_what_a_job_writes_beside_its_config_is_no_change(check: Call) -> None:
    """A config in a checkout depends on the names around it, but not on logs and weights."""
    Path("megatron/core").mkdir(parents=True)
    Path("megatron/core/package_info.py").write_text("MAJOR, MINOR, PATCH, PRE_RELEASE = 0, 14, 0, ''\n")
    Path(".git").mkdir()
    write("run.yaml", CONFIG)
    first = check(".")
    for name in ("train.log", "slurm-17.out", "iter_10.pt"):
        write(name, "1")
    assert check(".") == first and check.checked == []
    write("wrapper.sh", "python run_mindformer.py --config run.yaml\n")
    check(".")
    assert "run.yaml" in check.checked


def test_a_script_that_another_one_sources_counts(check: Call) -> None:
    write("sizes.sh", "TP=3\n")
    write(
        "run.sh",
        (
            'source sizes.sh\ntorchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size "$TP" '
            "--num-layers 2\n"
        ),
    )
    first = check("run.sh")
    check("run.sh")
    assert check.checked == []
    write("sizes.sh", "TP=2\n")
    assert check("run.sh") != first and check.checked == ["run.sh"]


def test_whatever_else_is_said_counts(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write("run.yaml", CONFIG)
    check("run.yaml")
    for words in (
        ("--world-size", "8"),
        ("--ignore", "heads-not-divisible"),
        ("--color", "always"),
        ("--verbose",),
        ("--isolated",),
        ("--target", "mindformers@1.5.0"),
    ):
        check("run.yaml", *words)
        assert check.checked == ["run.yaml"], words
    write("preflight.toml", "world-size = 6\n")
    check("run.yaml")
    assert check.checked == ["run.yaml"]
    check("./run.yaml")
    assert check.checked == ["./run.yaml"]
    monkeypatch.setenv(VARIABLE, "1")
    check("run.yaml")
    assert check.checked == ["run.yaml"]


def test_what_cannot_be_read_is_told_every_time(check: Call) -> None:
    write("run.yaml", "parallel_config: [\n")
    assert check("run.yaml") == check("run.yaml") and check.checked == ["run.yaml"]


def test_a_spoilt_memory_is_no_memory(check: Call, tmp_path: Path) -> None:
    write("run.yaml", CONFIG)
    first = check("run.yaml")
    (kept,) = (tmp_path / "cache" / "told").glob("*.json")
    for text in (
        "",
        "{",
        "[]",
        '{"files": [], "told": 3}',
        '{"files": [["x"]], "told": []}',
        '{"files": [], "told": [[[1]]]}',
    ):
        cache_folder.write(f"told/{kept.name}", text)
        assert check("run.yaml") == first and check.checked == ["run.yaml"], text


def test_what_was_not_told_for_a_month_is_forgotten(check: Call, tmp_path: Path) -> None:
    told = tmp_path / "cache" / "told"
    told.mkdir(parents=True)
    old, new = f"{'0' * 32}.json", f"{'1' * 32}.json"
    for name, days in ((old, 31), (new, 29), ("theirs", 31)):
        (told / name).write_text("", encoding="utf-8")
        os.utime(told / name, times=(0, time.time() - days * cache_folder.DAY))
    write("run.yaml", CONFIG)
    check("run.yaml")
    assert {new, "theirs", ".swept"} < {path.name for path in told.iterdir()} and not (told / old).exists()


def test_many_processes_tell_what_one_tells(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.yaml").write_text(CONFIG.replace("3", str(number % 4 + 1)), encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("parallel_config: [\n", encoding="utf-8")

    def told(jobs: str) -> tuple[int, bytes, bytes]:
        words = [sys.executable, "-m", "preflight", "check", "--no-cache", "--jobs", jobs, ".", "broken.yaml"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert told("1") == told("4") == told("0")
    assert told("1")[1].count(b"error") >= 7
