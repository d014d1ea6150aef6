"""The help of commands, and the description of an installation."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Cli

GOOD = "toy: true\ndata: 2\ntensor: 4\n"


@pytest.mark.parametrize("command", ["check", "fix", "show", "memory", "layouts", "diff", "baseline"])
def test_options_stand_in_groups_with_a_commands_own_first(cli: Cli, command: str) -> None:
    headings = [line for line in cli(command, "--help").out.splitlines() if line[:1].isalpha() and line.endswith(":")]
    assert headings[:2] == ["Arguments:", "Options:"]
    assert len(headings) > 3


def test_a_full_baseline_is_no_new_finding(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("toy: true\ndata: 3\ntensor: 2\nname: LOUD\n")
    assert cli("baseline", "run.yaml", "--world-size", "8").code == 0
    ran = cli("check", "run.yaml", "--world-size", "8", "--baseline", "preflight-baseline.json")
    assert ran.code == 0
    assert ran.out.startswith("No new findings (2 known hidden) in 1 file")


def test_diff_prints_what_fix_would_write(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("toy: true\ndata: 3\ntensor: 2\nname: LOUD\n")
    before = (tmp_path / "run.yaml").read_text()
    ran = cli("check", "run.yaml", "--diff")
    assert ran[:2] == cli("fix", "run.yaml", "--diff")[:2]
    assert (tmp_path / "run.yaml").read_text() == before
    assert cli("check", "run.yaml", "--diff", "--fix").code == 2


def test_show_files_lists_what_is_checked(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.txt").write_text("")
    assert cli("check", ".", "--show-files") == (0, "a.yaml\n", "")


def test_doctor_prints_what_a_report_needs(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "preflight.toml").write_text("ignore = ['toy-name']\n")
    ran = cli("doctor")
    assert ran.code == 0
    names = [line.split()[0] for line in ran.out.splitlines()]
    assert {"preflight", "python", "extra", "settings", "rules", "plugins", "cache", "checkout"} <= set(names)
    assert f"{tmp_path}/preflight.toml" in ran.out and "ignore toy-name" in ran.out


def test_the_list_of_commands_has_whole_sentences(cli: Cli) -> None:
    listed = cli("--help").out.partition("Commands:")[2]
    assert "propose its settings, a pre-commit entry and a baseline." in " ".join(listed.split())
    assert "..." not in listed
