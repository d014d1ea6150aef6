"""Files named like options are checked or refused; no name disables a check or writes a file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from bounded import COMMAND, GRAPH

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
BAD = f"#!/bin/bash\n{COMMAND} --tensor-model-parallel-size 3\n"
NAMES = (
    "--exclude=*.sh",
    "--output-file=bad.sh",
    "-h",
    "--help",
    "--exit-zero",
    "--version",
    "-o",
    "--isolated",
    "-",
    "--",
)
NAMES += (
    "--force-exclude",
    "--allow-unclaimed",
    "--show-settings.yaml",
    "--select=none.yaml",
    "-x/run.sh",
    "--statistics",
)
COMMANDS = ("check", "fix", "show", "memory", "layouts", "diff", "baseline")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.sh").write_text(BAD)
    (tmp_path / "run.yaml").write_text(GRAPH)
    return tmp_path


def write(name: str) -> None:
    os.makedirs(os.path.dirname(f"./{name}"), exist_ok=True)
    Path(f"./{name}").write_text(GRAPH.replace("40", "42") if name.endswith(".yaml") else BAD)


def preflight(*words: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "preflight", *words]
    return subprocess.run(run, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_before_the_end_of_the_options_is_refused(folder: Path, name: str) -> None:
    write(name)
    for words in (
        ["check", "--force-exclude", "--allow-unclaimed", name, "bad.sh"],
        ["check", "bad.sh", name],
        ["fix", name],
    ):
        ran = preflight(*words)
        assert ran.returncode == 2 and ran.stdout == "", ran
        assert (
            ran.stderr == f"preflight: {name!r} is both an option and the name of a file; write ./{name} for the file\n"
        )
    assert (folder / "bad.sh").read_text() == BAD


@pytest.mark.parametrize("name", NAMES)
def test_a_name_behind_the_end_of_the_options_is_a_file(folder: Path, name: str) -> None:
    if name == "--":
        pytest.skip("is refused")
    write(name)
    known = name in ("--force-exclude", "--allow-unclaimed")  # the hooks' own switches are refused in place
    ran = preflight("check", *([] if known else ["--allow-unclaimed"]), "--force-exclude", "--", name, "bad.sh")
    if name == "--force-exclude":
        assert ran.returncode == 2 and "both an option and the name of a file" in ran.stderr
        return
    assert ran.returncode == 1, ran
    assert f"./{name}:" in ran.stdout and "\nbad.sh:" in ran.stdout
    assert (folder / "bad.sh").read_text() == BAD


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses(folder: Path, command: str) -> None:
    write("--output-file=bad.sh")
    ran = preflight(command, "--output-file=bad.sh", "run.yaml")
    assert ran.returncode == 2 and "both an option and the name of a file" in ran.stderr
    assert (folder / "bad.sh").read_text() == BAD and not (folder / "preflight-baseline.json").exists()


def test_a_command_behind_the_end_of_the_options_is_a_command(folder: Path) -> None:
    write("--num-layers")
    assert "tensor 3" in preflight("check", "--", *f"{COMMAND} --tensor-model-parallel-size 3".split()).stdout


def hooks(**more: object) -> list[dict[str, object]]:
    """The published hooks, run by the preflight next to this Python."""
    published = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    return [
        {**hook, "language": "system", "verbose": True, **more}
        for hook in published
        if hook["id"] in ("preflight", "preflight-fix")
    ]


def guide() -> list[dict[str, object]]:
    """The local hook of the guide."""
    block = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8").split("```yaml\n")[-1].split("```")[0]
    found: list[dict[str, object]] = yaml.safe_load(block)["repos"][0]["hooks"]
    return found


def committed(folder: Path, given: list[dict[str, object]]) -> subprocess.CompletedProcess[str]:
    """Commit everything in a repository with these hooks."""
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": given}]}))
    home = folder.parent / f"{folder.name}-home"
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PRE_COMMIT_HOME": str(home)}
    for name in [name for name in environment if name.startswith("GIT_")]:
        del environment[name]
    for words in (["git", "init", "-q", "-b", "main"], ["pre-commit", "install"], ["git", "add", "-A"]):
        subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)
    words = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-m", "Change"]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("pre-commit", path=f"{BIN}:{os.environ['PATH']}") is None, reason="pre-commit is not installed"
)
@pytest.mark.parametrize(
    "given", [hooks(), guide(), hooks(args=["--world-size", "8"]), hooks(args=["--world-size", "8", "--"])]
)
@pytest.mark.parametrize(
    "name", ["--exclude=*.sh", "--output-file=bad.sh", "-h", "--exit-zero", "--help", "--isolated"]
)
def test_a_commit_with_such_a_name_is_checked(folder: Path, name: str, given: list[dict[str, object]]) -> None:
    write(name)
    Path(f"./{name}").chmod(0o755)
    ran = committed(folder, given)
    told = ran.stdout + ran.stderr
    assert ran.returncode == 1, told
    assert (folder / "bad.sh").read_text() == BAD, "no report is written over it"
    if "--" in given[0]["args"]:  # type: ignore[operator]
        assert f"./{name}:" in told and "\nbad.sh:" in told
    else:
        assert "both an option and the name of a file" in told


@pytest.mark.parametrize("file", ["action.yml", "docs/ci/preflight.gitlab-ci.yml"])
def test_the_templates_end_the_options_before_the_paths(file: str) -> None:
    commands = [
        line for line in (ROOT / file).read_text(encoding="utf-8").splitlines() if "PATHS" in line and "-- $" in line
    ]
    assert len(commands) == 1 and commands[0].rstrip().endswith(("-- $PATHS", "-- $PREFLIGHT_PATHS"))
