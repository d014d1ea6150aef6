"""Adoption in a repository with existing findings: baseline, changed lines only, counts, re-checks on change."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BAD = "toy: true\ndata: 4\ntensor: 8\n"
SHOUTED = "toy: true\ndata: 2\ntensor: 8\nname: LOUD\n"
CHECK = ("check", "--world-size", "16", "-f", "concise")


def write(text: str, name: str = "run.yaml") -> Path:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_baseline_hides_what_it_knows_when_lines_move(cli):
    write(BAD, "conf/run.yaml")
    assert cli("baseline", "--world-size", "16", "conf").out == "wrote preflight-baseline.json: 1 finding in 1 file\n"
    assert cli(*CHECK, "conf", "--baseline", "preflight-baseline.json").code == 0
    write("# moved\n\n" + BAD, "conf/run.yaml")
    assert cli(*CHECK, "conf", "--baseline", "preflight-baseline.json").out == ""


def test_a_baseline_hides_no_new_finding(cli):
    write(BAD)
    cli("baseline", "--world-size", "16", "run.yaml")
    write(BAD + "name: LOUD\n")
    assert [
        line.rpartition(" ")[2]
        for line in cli(*CHECK, "run.yaml", "--baseline", "preflight-baseline.json").out.splitlines()
    ] == ["[toy-name]"]


def test_a_baseline_names_no_line_and_is_relative_to_its_own_folder(cli):
    write(BAD, "conf/run.yaml")
    Path("ci").mkdir()
    cli("baseline", "--world-size", "16", "conf/run.yaml", "-o", "ci/known.json")
    assert json.loads(Path("ci/known.json").read_text())["files"] == {
        "../conf/run.yaml": [{"rule": "toy-devices", "about": "data"}]
    }
    assert cli(*CHECK, str(Path("conf/run.yaml").absolute()), "--baseline", "ci/known.json").code == 0


def test_a_baseline_says_when_it_is_stale(cli):
    write(BAD)
    cli("baseline", "--world-size", "16", "run.yaml")
    write(BAD.replace("data: 4", "data: 2"))
    assert (
        "preflight-baseline.json has 1 entry without a finding; record the baseline again"
        in cli(*CHECK, "run.yaml", "--baseline", "preflight-baseline.json").err
    )


@pytest.mark.parametrize("text", ["", "[]", '{"files": {"a": [{}]}}', '{"preflight-baseline": 2, "files": {}}'])
def test_what_is_no_baseline_is_wrong_usage(cli, text):
    write(BAD)
    Path("known.json").write_text(text)
    ran = cli(*CHECK, "run.yaml", "--baseline", "known.json")
    assert ran.code == 2 and "known.json: is not a baseline" in ran.err


def test_no_baseline_is_written_of_what_cannot_be_read(cli):
    write("toy: true\n  broken: [\n")
    ran = cli("baseline", "run.yaml")
    assert ran.code == 2 and not Path("preflight-baseline.json").exists()


@pytest.fixture
def commit(cli):
    """Commits the contents of the folder."""

    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words], check=True, capture_output=True
        )

    git("init", "-q", "-b", "main")

    def all_of_it() -> None:
        git("add", "-A")
        git("commit", "-q", "-m", "Change")

    return all_of_it


def test_only_what_changed_is_told(cli, commit):
    write(BAD, "old.yaml")
    write(SHOUTED, "touched.yaml")
    commit()
    write(BAD, "new.yaml")
    write(SHOUTED.replace("data: 2", "data: 4"), "touched.yaml")
    told = cli(*CHECK, ".", "--diff-base", "HEAD").out
    assert [line.split(":")[0] + line.rpartition(" ")[2] for line in told.splitlines()] == [
        "new.yaml[toy-devices]",
        "touched.yaml[toy-devices]",
    ]


def test_a_finding_that_a_change_elsewhere_brings_is_told(cli, commit):
    write("toy: true\ndata: 2\n# far\n# away\ntensor: 8\n")
    commit()
    write("toy: true\ndata: 2\n# far\n# away\n")
    assert "[toy-devices]" in cli(*CHECK, "run.yaml", "--diff-base", "HEAD").out


def test_a_moved_finding_is_not_told(cli, commit):
    write(BAD)
    commit()
    write("# moved\n" + BAD)
    assert cli(*CHECK, "run.yaml", "--diff-base", "HEAD").out == ""


@pytest.mark.parametrize("revision", ["nowhere", "--output=x", ""])
def test_an_unknown_revision_is_wrong_usage(cli, commit, revision):
    write(BAD)
    ran = cli(*CHECK, "run.yaml", f"--diff-base={revision}")
    assert ran.code == 2 and "git does not know the revision" in ran.err and not Path("x").exists()


def test_statistics_count_by_rule(cli):
    write(BAD + "name: LOUD\n", "a.yaml")
    write(BAD, "b.yaml")
    told = cli("check", ".", "--world-size", "16", "--statistics").out
    assert (
        told
        == "    2  error    toy-devices (2 with a fix)\n    1  warning  toy-name (1 with a fix)\n    3  in 2 files\n"
    )


def test_watch_checks_again_when_a_file_changes(tmp_path):
    write(
        GOOD := (Path(__file__).parents[1] / "examples/megatron/sound_8b.yaml").read_text(), str(tmp_path / "run.yaml")
    )
    words = [
        sys.executable,
        "-u",
        "-m",
        "preflight",
        "check",
        "run.yaml",
        "--world-size",
        "32",
        "--watch",
        "-f",
        "concise",
    ]
    running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None and running.stderr is not None
    try:
        assert "watching" in running.stderr.readline()
        time.sleep(0.05)
        write(GOOD.replace("--num-layers: 32", "--num-layers: 33"), str(tmp_path / "run.yaml"))
        assert "33 layers" in running.stdout.readline()
        assert "watching" in running.stderr.readline()
        os.kill(running.pid, signal.SIGINT)
        assert running.wait(10) == 1
    finally:
        running.kill()
