"""Candidates for known defects: fixes on the training path that no row names."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from upstream.defects import candidates
from upstream.frameworks import MEGATRON, Release
from upstream.repositories import Repositories


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def commit(folder: Path, subject: str, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-m", subject)


def test_a_fix_is_listed_with_what_it_changes_and_where_that_stands(tmp_path: Path) -> None:
    git(tmp_path, "init", "-b", "main")
    commit(tmp_path, "Begin", "megatron/core/loss.py", "loss = total\n")
    git(tmp_path, "tag", "old")
    commit(tmp_path, "Fix the scale of the loss", "megatron/core/loss.py", "loss = total / count\n")
    commit(tmp_path, "Fix a test", "tests/test_loss.py", "assert True\n")
    commit(tmp_path, "Add a feature", "megatron/core/more.py", "more = 1\n")
    git(tmp_path, "tag", "new")
    framework = replace(MEGATRON, releases=(Release("0.1.0", "old"), Release("0.2.0", "new")), published=())
    found = list(candidates(framework, Repositories([str(tmp_path)], "megatron"), "0.1.0", "0.2.0", known=""))
    assert [line.partition(" ")[2] for line in found[:1]] == ["Fix the scale of the loss"]
    assert found[1:] == ["  megatron/core/loss.py: 0.1.0", "    - loss = total", "    + loss = total / count"]
    read = found[0].partition(" ")[0]
    assert not list(candidates(framework, Repositories([str(tmp_path)], "megatron"), "0.1.0", "0.2.0", known=read))
