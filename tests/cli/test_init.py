"""`preflight init`: its proposals for a project, and the written files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from harness import Cli
from toy import BAD, GOOD

from preflight.cli import run

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_it_proposes_and_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(BAD)
    ran = cli("init", "--world-size", "8")
    assert ran.code == 0 and "Found 1 training config:\n  1 run of toy@1.0\n" in ran.out
    assert "  findings: 1 error\n" in ran.out and "world-size = 8" in ran.out
    assert "preflight-baseline.json would contain 1 finding;" in ran.out
    assert [path.name for path in tmp_path.iterdir()] == ["run.yaml"]


def test_what_it_writes_makes_a_check_pass(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(BAD)
    assert cli("check", ".", "--world-size", "8").code == 1
    cli("init", "--world-size", "8", "--device", "toy-card", "--write")
    assert (tmp_path / "preflight.toml").read_text().splitlines()[-2:] == ["# devices-per-node = 8", "world-size = 8"]
    hook = yaml.safe_load((tmp_path / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"][0]
    words = hook["entry"].split()[1:]
    assert cli(*words, *hook["args"], "run.yaml").code == 0
    assert "no settings file" not in cli("check", ".", "--show-settings").out


def test_it_writes_over_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(GOOD)
    (tmp_path / "preflight.toml").write_text("world-size = 8\n")
    assert "preflight.toml already exists and was left unchanged" in cli("init", "--write").out
    assert (tmp_path / "preflight.toml").read_text() == "world-size = 8\n"
    assert not (tmp_path / "preflight-baseline.json").exists(), "there is nothing to write down"


def test_a_release_that_only_options_tell_is_a_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(EXAMPLES / "megatron", tmp_path / "jobs")
    monkeypatch.chdir(tmp_path)
    run(["init"])
    out = capsys.readouterr().out
    assert " (a guess: " in out and '# target = "megatron@' in out
    run(["check", "jobs/train_8b.sh"])
    told = "The release is unknown: 15 known releases from 0.6.0 to 0.20.0 fit; state it with --target, "
    assert told in capsys.readouterr().out
    run(["check", "jobs/train_8b.sh", "--target", "megatron@0.16"])
    assert "guess" not in capsys.readouterr().out


def test_guesses_of_one_release_are_one_line_and_name_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jobs" / "a").mkdir(parents=True)
    launch = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 "
    (tmp_path / "jobs" / "a" / "plain.sh").write_text(launch + "--mock-data\n")
    (tmp_path / "jobs" / "newer.sh").write_text(launch + "--mock-data --decrease-batch-size-if-needed\n")
    shutil.copytree(EXAMPLES / "mindformers", tmp_path / "forms")
    monkeypatch.chdir(tmp_path)
    run(["init"])
    out = capsys.readouterr().out
    assert out.count(" of megatron@") == 1 and "  2 runs of megatron@" in out
    assert '# [per-file."jobs/**"]\n    # target = "megatron@' in out
    run(["init", "--write"])
    assert '# [per-file."forms/**"]\n# target = "mindformers@' in (tmp_path / "preflight.toml").read_text()


def test_where_there_is_no_config_it_says_so(cli: Cli) -> None:
    ran = cli("init")
    assert ran.code == 2 and "nothing was found: no YAML file or shell script was found" in ran.err


def test_it_speaks_chinese_and_writes_settings_in_english(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.yaml").write_text(BAD)
    monkeypatch.setenv("PREFLIGHT_LANG", "zh")
    ran = cli("init", "--world-size", "8")
    assert ran.out.startswith("发现 1 个训练配置：\n  toy@1.0：1 个运行\n") and "  问题：1 个错误\n" in ran.out
    assert "preflight.toml 的内容将为：\n\n    # Settings of preflight" in ran.out
