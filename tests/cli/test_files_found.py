"""The files that a call checks, their settings and encodings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from harness import Cli
from toy import BAD, LOUD


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_toml", ".toml").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


def test_the_settings_nearest_to_a_file_hold(cli: Cli, tmp_path: Path) -> None:
    put(tmp_path, preflight_toml="world-size = 6", a__run_yaml=BAD, b__run_yaml=BAD, b__preflight_toml="world-size = 8")
    ran = cli("check", ".", "-f", "concise")
    assert ran.out == "b/run.yaml:2:7: error: 3 x 2 is not 8 [toy-devices]\n"
    assert "set data to 4" in cli("fix", "--diff", "--unsafe", "b/run.yaml").err
    assert "6" in cli("show", "a/run.yaml").out and "8" in cli("show", "b/run.yaml").out
    assert cli("check", ".", "--config", "preflight.toml").code == 0
    assert cli("check", ".", "--isolated").code == 0


def test_the_exclusions_of_the_settings_nearest_to_a_file_hold(cli: Cli, tmp_path: Path) -> None:
    put(tmp_path, a__run_yaml=LOUD, b__run_yaml=LOUD, b__preflight_toml='exclude = ["run.yaml"]')
    assert "a/run.yaml" in (out := cli("check", ".", "-f", "concise").out) and "b/run.yaml" not in out


def test_broken_settings_beside_a_file_are_an_error_of_this_file(cli: Cli, tmp_path: Path) -> None:
    put(tmp_path, a__run_yaml=LOUD, b__run_yaml=LOUD, b__preflight_toml="colour = 1")
    ran = cli("check", ".", "-f", "concise")
    assert ran.code == 2 and "a/run.yaml:2:7" in ran.out and "there is no setting 'colour'" in ran.err


@pytest.mark.skipif(os.name == "nt", reason="modes of folders")
def test_settings_in_a_folder_that_others_may_write_to_do_not_hold(cli: Cli, tmp_path: Path) -> None:
    put(tmp_path, a__b__run_yaml=LOUD, a__preflight_toml='ignore = ["*"]')
    (tmp_path / "a").chmod(0o777)
    assert "shouted" in cli("check", "a/b", "-f", "concise").out


def test_what_is_remembered_of_a_file_is_forgotten_with_its_settings(cli: Cli, tmp_path: Path) -> None:
    put(tmp_path, a__run_yaml=LOUD)
    assert "shouted" in cli("check", "a", "-f", "text").out
    put(tmp_path, a__preflight_toml='ignore = ["toy-name"]')
    assert "shouted" not in cli("check", "a", "-f", "text").out


def test_files_that_git_ignores_are_passed_over_in_folders(cli: Cli, tmp_path: Path) -> None:
    repository(tmp_path)
    put(tmp_path, out__run_yaml=LOUD, conf__run_yaml=LOUD, conf__old_yaml=LOUD)
    (tmp_path / ".gitignore").write_text("/out/\n")
    (tmp_path / "conf" / ".gitignore").write_text("*.yaml\n!run.yaml\n")
    found = lambda *words: [line.partition(":")[0] for line in cli("check", *words, "-f", "concise").out.splitlines()]  # noqa: E731
    assert found(".") == ["conf/run.yaml"]
    assert found("conf") == ["conf/run.yaml"]
    assert found(".", "--no-gitignore") == ["conf/old.yaml", "conf/run.yaml", "out/run.yaml"]
    assert found(".", "--include", "out/*.yaml") == ["conf/run.yaml", "out/run.yaml"]
    assert found("out/run.yaml") == ["out/run.yaml"], "what is named is checked"


def test_without_a_repository_nothing_is_ignored(cli: Cli, tmp_path: Path) -> None:
    put(tmp_path, run_yaml=LOUD)
    (tmp_path / ".gitignore").write_text("*\n")
    assert "shouted" in cli("check", ".").out


def test_other_names_are_looked_for_where_asked(cli: Cli, tmp_path: Path) -> None:
    put(tmp_path, a__run_yaml=LOUD)
    (tmp_path / "a" / "job.conf").write_text(LOUD)
    assert "job.conf" not in cli("check", "a", "-f", "concise").out
    assert "a/job.conf:2:7" in cli("check", "a", "--include", "*.conf", "-f", "concise").out
    put(tmp_path, preflight_toml='include = ["*.conf"]')
    assert "a/job.conf:2:7" in cli("check", "a", "-f", "concise").out


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "latin-1"])
def test_a_script_is_read_in_the_encoding_that_it_has(tmp_path: Path, encoding: str) -> None:
    from preflight.api import check

    comment = "# prêt\n" if encoding == "latin-1" else "# 训练脚本\n"
    text = f"{comment}NODES=1\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layer 32\n"
    (path := tmp_path / "run.sh").write_bytes(text.encode(encoding))
    found = [(f.line, f.rule) for f in check(path).findings]
    (other := tmp_path / "utf.sh").write_text(text, encoding="utf-8")
    assert found == [(f.line, f.rule) for f in check(other).findings] != []


def test_a_fix_keeps_the_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from preflight.cli import run

    text = "# 训练脚本\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --sequence-paralel\n"
    (path := tmp_path / "run.sh").write_bytes(text.encode("gbk"))
    monkeypatch.chdir(tmp_path)
    run(["fix", "--unsafe", "run.sh"])
    assert path.read_bytes() == text.replace("paralel", "parallel").encode("gbk")


def test_a_yaml_is_utf_8_as_its_framework_reads_it(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_bytes(f"{LOUD}# 训练\n".encode("gbk"))
    ran = cli("check", "run.yaml")
    assert ran.code == 2 and "is not UTF-8" in ran.err
