"""Settings that another user may have written are ignored, because settings can disable the check."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
BAD = (EXAMPLES / "mindformers" / "run_llama2_7b.yaml").read_text(encoding="utf-8")
STRANGER = 54321
HOSTILE = [
    'ignore = ["*"]\n',
    'exclude = ["*"]\n',
    'fail-on = "never"\nselect = ["silent-change"]\n',
    "this is no TOML [\n",
    'required-version = ">=99"\n',
    "no-such-setting = 1\n",
]
IGNORED = "these settings are ignored"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="modes of folders")]
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A folder that everybody may write to, as scratch file systems have at their top."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def project(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own folder in it, with a config that has an error, and the working directory there."""
    folder = scratch / "me"
    folder.mkdir(0o755)
    (folder / "run.yaml").write_text(BAD, encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


def preflight(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "preflight", *words]
    return subprocess.run(run, capture_output=True, text=True, input=text or "", timeout=60, check=False)


COMMANDS = [
    ["check", "run.yaml"],
    ["check", "."],
    ["check", "run.yaml", "-f", "json"],
    ["fix", "--diff", "run.yaml"],
    ["show", "run.yaml"],
    ["memory", "run.yaml", "--device", "910b"],
    ["layouts", "run.yaml", "--device", "910b", "--world-size", "8", "--show", "1"],
    ["migrate", "run.yaml", "--to", "mindformers@1.5.0"],
    ["diff", "run.yaml", "other.yaml"],
    ["baseline", "run.yaml", "-o", "known.json"],
    ["init"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_does_the_same_without_them(project: Path, scratch: Path, words: list[str]) -> None:
    (project / "other.yaml").write_text(BAD.replace("epochs: 2", "epochs: 3"), encoding="utf-8")
    alone = preflight(*words)
    for text in HOSTILE[:1] if words[0] not in ("check", "fix") else HOSTILE:
        (scratch / "preflight.toml").write_text(text)
        ran = preflight(*words)
        assert (ran.returncode, ran.stdout) == (alone.returncode, alone.stdout), ran.stderr
        told = [line for line in ran.stderr.splitlines() if IGNORED in line]
        assert told == [
            f"preflight: {scratch}/preflight.toml: {IGNORED}: "
            "its folder is writable by everyone; --config FILE uses them"
        ]


def test_stdin_and_a_command_do_the_same(project: Path, scratch: Path) -> None:
    (scratch / "preflight.toml").write_text(HOSTILE[0])
    assert preflight("check", "-", "--stdin-filename", "run.yaml", text=BAD).returncode == 1
    other = scratch / "other"
    other.mkdir()
    (other / "preflight.toml").write_text('fail-on = "error"\n')
    ran = preflight("check", "-", "--stdin-filename", "../you/run.yaml", text=BAD)
    assert ran.returncode == 1 and ran.stderr.count(IGNORED) == 1


def test_the_gate_reads_none(project: Path, scratch: Path) -> None:
    (scratch / "preflight.toml").write_text(HOSTILE[0])
    (project / "job.sh").write_text("#!/bin/bash\ntorchrun pretrain_gpt.py --num-layer 3\n")
    for follow in ("--follow", "--no-follow"):
        ran = preflight("gate", "--script", "job.sh", follow, "--timeout", "60")
        assert ran.returncode == 1 and json.loads(ran.stdout)["verdict"] == "refuse"


def test_the_editor_does_the_same(project: Path, scratch: Path) -> None:
    pytest.importorskip("pygls", reason="needs the extra lsp")
    from preflight.lsp.buffers import Buffers

    told: list[tuple[str, str]] = []
    (scratch / "preflight.toml").write_text(HOSTILE[0])
    buffers = Buffers(lambda path, why: told.append((path, why)))
    for _ in range(2):
        buffer = buffers.update((project / "run.yaml").as_uri(), BAD)
        assert buffer is not None and any(str(finding.severity) == "error" for finding in buffer.report.findings)
    assert told == [(f"{scratch}/preflight.toml", "its folder is writable by everyone")]


def test_the_editor_reads_settings_as_the_command_line_does(project: Path) -> None:
    pytest.importorskip("pygls", reason="needs the extra lsp")
    from preflight.lsp.buffers import Buffers

    (project / "preflight.toml").write_text('device = "mine"\n[[devices]]\nname = "mine"\nmemory-gib = 4\n')
    buffer = Buffers().update((project / "run.yaml").as_uri(), BAD)
    assert buffer is not None and buffer.job is not None and buffer.job.cluster.device is not None
    (project / "preflight.toml").write_text('required-version = ">=99"\n')
    buffer = Buffers().update((project / "run.yaml").as_uri(), BAD)
    assert buffer is not None and "requires preflight >=99" in buffer.report.errors[0].message


def holds(project: Path) -> bool:
    """Whether settings that ignore every rule hold for the config."""
    return preflight("check", "run.yaml", "-q").returncode == 0


def test_own_settings_hold(project: Path, scratch: Path) -> None:
    """Also in a folder that is in one that everybody may write to, in a group's, and through a link to own ones."""
    own = project / "preflight.toml"
    own.write_text(HOSTILE[0])
    assert holds(project)
    own.chmod(0o664)
    project.chmod(0o2775)
    assert holds(project)
    scratch.chmod(0o777)
    assert holds(project)
    (project / "shared").mkdir()
    own.rename(project / "shared" / "site.toml")
    own.symlink_to("shared/site.toml")
    assert holds(project)


@pytest.mark.parametrize(
    ("place", "mode", "why"),
    [
        ("preflight.toml", 0o666, "it is writable by everyone"),
        ("", 0o777, "its folder is writable by everyone"),
        ("", 0o1777, "its folder is writable by everyone"),
    ],
)
def test_what_everybody_may_write_to_does_not_hold(project: Path, place: str, mode: int, why: str) -> None:
    (project / "preflight.toml").write_text(HOSTILE[0])
    (project / place).chmod(mode)
    assert not holds(project)
    shown = preflight("check", "--show-settings").stdout
    assert f"# ignored: {project}/preflight.toml: {why}\n" in shown and "# no settings file" in shown
    assert preflight("check", "run.yaml", "--config", "preflight.toml").returncode == 0, "what is named holds"


def test_a_link_to_what_everybody_may_write_to_does_not_hold(project: Path, scratch: Path) -> None:
    (project / "preflight.toml").symlink_to("../theirs.toml")
    (scratch / "theirs.toml").write_text(HOSTILE[0])
    assert not holds(project)
    assert "it is a link, and the folder of its target is writable by everyone" in preflight("check", "run.yaml").stderr
    (project / "sub").mkdir()
    (project / "sub" / "theirs.toml").write_text(HOSTILE[0])
    (project / "sub" / "theirs.toml").chmod(0o646)
    (project / "preflight.toml").unlink()
    (project / "preflight.toml").symlink_to("sub/theirs.toml")
    assert "it is a link, and its target is writable by everyone" in preflight("check", "run.yaml").stderr


@as_root
def test_what_belongs_to_somebody_else_does_not_hold(project: Path) -> None:
    (project / "preflight.toml").write_text(HOSTILE[0])
    os.chown(project / "preflight.toml", STRANGER, -1)
    assert not holds(project) and "it belongs to another user" in preflight("check", "run.yaml").stderr
    os.chown(project, STRANGER, -1)
    assert holds(project), "settings of the owner of what is checked"
    inner = project / "inner"
    inner.mkdir()
    shutil.copy(project / "run.yaml", inner)
    assert preflight("check", "inner/run.yaml", "-q").returncode == 0, "found from the owner's own folder"
    os.chdir(inner)
    assert not holds(inner) and "its folder belongs to another user" in preflight("check", "run.yaml").stderr


def test_a_strangers_pyproject_stops_nothing(project: Path, scratch: Path) -> None:
    for text in ("[tool.other]\n", "no TOML [", "[tool.preflight]\nignore = ['*']\n"):
        (scratch / "pyproject.toml").write_text(text)
        ran = preflight("check", "run.yaml")
        assert ran.returncode == 1 and (IGNORED in ran.stderr) == ("preflight" in text), ran.stderr


def test_settings_further_above_hold_where_nearer_ones_do_not(project: Path) -> None:
    (project / "preflight.toml").write_text(HOSTILE[0])
    (inner := project / "inner").mkdir()
    shutil.copy(project / "run.yaml", inner)
    (inner / "preflight.toml").write_text('fail-on = "never"\n')
    inner.chmod(0o777)
    ran = preflight("check", "inner", "-q")
    assert ran.returncode == 0 and ran.stdout == "" and f"inner/preflight.toml: {IGNORED}" in ran.stderr
    shown = preflight("check", "inner", "--show-settings").stdout
    assert f"# {project}/preflight.toml" in shown and f"# ignored: {inner}/preflight.toml" in shown


@pytest.mark.parametrize("command", ["check", "show", "memory", "baseline", "init", "fix"])
def test_broken_settings_of_many_files_are_told_once(project: Path, command: str) -> None:
    (many := project / "many").mkdir()
    for number in range(20):
        (many / f"{number}.yaml").write_text(BAD, encoding="utf-8")
    (many / "preflight.toml").write_text("[preflight]\n")
    ran = preflight(command, "many")
    assert (ran.stdout + ran.stderr).count("there is no setting 'preflight'") == 1 and ran.returncode in (0, 2)
    ran = preflight(command, "many", "run.yaml")
    assert (ran.stdout + ran.stderr).count("there is no setting 'preflight'") == 1
