"""The command line, on a made-up framework in a repository of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from upstream.__main__ import main
from upstream.repositories import VARIABLE

OLD = """
def add_megatron_arguments(parser):
    parser.add_argument("--hidden-size", type=int)
    parser.add_argument("--legacy", action="store_true")
    return parser


def validate_args(args):
    assert args.hidden_size % args.num_attention_heads == 0
    if args.legacy:
        args.fusion = False
"""
NEW = OLD.replace('    parser.add_argument("--legacy", action="store_true")\n', "").replace(
    "    if args.legacy:\n        args.fusion = False\n",
    "    if args.fusion and args.offload:\n        raise ValueError('not together')\n",
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    file = folder / "megatron" / "training" / "arguments.py"
    file.parent.mkdir(parents=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for tag, text in (("v1", OLD), ("v2", NEW)):
        file.write_text(text, encoding="utf-8")
        for words in (["add", "-A"], ["commit", "-qm", tag], ["tag", tag]):
            subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
    return folder


def test_checks_of_a_tag(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks", "--tag", "v1", "--all", "--repository", str(repository)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row[0].partition(":")[2], row[2], row[4]) for row in rows] == [
        ("3", "parser", "--hidden-size"),
        ("4", "parser", "--legacy"),
        ("9", "assert", "0 != hidden_size % num_attention_heads"),
        ("11", "change", "legacy: fusion = False"),
    ]


def test_options_of_a_tag(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("packaging")
    assert main(["options", "--tag", "v2", "--repository", f"megatron={repository}", "--python", sys.executable]) == 0
    assert json.loads(capsys.readouterr().out)["options"]["--hidden-size"] == ["hidden_size", "int"]


def test_two_tags_compared(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("packaging")
    assert main(["diff", "v1", "v2", "--repository", str(repository)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "megatron v1 to v2: 3 and 2 options",
        "option gone: --legacy",
        "check new: megatron/training/arguments.py:10 validate_args: fusion and offload",
        "change gone: megatron/training/arguments.py:11 validate_args: legacy: fusion = False",
    ]


def test_what_is_not_there_is_said(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["checks", "--tag", "v9", "--repository", str(repository)]) == 2
    assert "v9" in capsys.readouterr().err
    monkeypatch.setenv(VARIABLE, str(tmp_path / "empty"))
    assert main(["checks", "--tag", "v1"]) == 2
    assert "--repository megatron=PATH" in capsys.readouterr().err
