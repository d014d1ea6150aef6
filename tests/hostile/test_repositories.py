"""`--diff-base` and `diff` in an untrusted repository: git runs no command configured by the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bounded import GRAPH

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None or os.name == "nt", reason="needs git and a shell"),
]

BAD = GRAPH.replace("pipeline_stage: 4", "pipeline_stage: 42")
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.com")
CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tbare = {bare}\n"


def git(folder: Path, *words: str) -> str:
    ran = subprocess.run(["git", *IDENTITY, *words], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository of two commits: a sound config, then a faulty one."""
    folder = tmp_path / "project"
    (folder / "configs").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for text in (GRAPH, BAD):
        (folder / "configs" / "run.yaml").write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "Change")
    return folder


@pytest.fixture
def trap(tmp_path: Path) -> tuple[Path, Path]:
    """A program that leaves a mark when it runs, and the mark."""
    mark, program = tmp_path / "ran", tmp_path / "trap"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >>'{mark}'\nexit 1\n")
    program.chmod(0o755)
    return program, mark


def check(folder: Path, path: str, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The report of a check against the revision before; `diff` is called as well, because of its git calls."""
    env = {**os.environ, **environment}

    def called(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "preflight", *words]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False, env=env)

    for sides in ("HEAD~1", "HEAD~1...HEAD"):
        assert called("diff", sides, path).returncode in (0, 1, 2)
    return called("check", path, "--diff-base", "HEAD~1", "-f", "concise", *more)


def bare(folder: Path, program: Path) -> None:
    """Turn a folder into a bare repository, as a commit can contain it: its config names a program wherever git
    supports one."""
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
        (folder / name / ".keep").touch()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    commands = f'\tworktree = "{folder}"\n\tfsmonitor = "{program}"\n\thooksPath = "{program.parent}"\n'
    (folder / "config").write_text(CONFIG.format(version=0, bare="false") + commands)


def promisor(config: Path, program: Path) -> None:
    """Have missing objects fetched from a remote with a program as its server."""
    remote = f'[remote "origin"]\n\turl = "{config.parent}"\n\tpromisor = true\n'
    remote += f'\tpartialclonefilter = blob:none\n\tuploadpack = "{program}"\n'
    config.write_text(
        config.read_text().replace("repositoryformatversion = 0", "repositoryformatversion = 1")
        + remote
        + "[extensions]\n\tpartialClone = origin\n"
    )


def test_a_bare_repository_in_a_folder_of_configs(project: Path, trap: tuple[Path, Path]) -> None:
    program, mark = trap
    bare(project / "configs", program)
    for folder, path in ((project, "configs"), (project / "configs", "run.yaml"), (project, "configs/run.yaml")):
        ran = check(folder, path)
        assert not mark.exists(), mark.read_text()
        assert ran.returncode == 1 and "42" in ran.stdout, (folder, ran)


def test_a_bare_repository_that_fetches(project: Path, trap: tuple[Path, Path]) -> None:
    program, mark = trap
    bare(project / "configs", program)
    promisor(project / "configs" / "config", program)
    check(project, "configs")
    assert not mark.exists(), mark.read_text()


def test_a_folder_that_is_a_bare_repository_and_nothing_else(tmp_path: Path, trap: tuple[Path, Path]) -> None:
    program, mark = trap
    folder = tmp_path / "unpacked"
    bare(folder, program)
    (folder / "run.yaml").write_text(BAD)
    ran = check(folder, "run.yaml")
    assert ran.returncode == 2 and "not in a git repository" in ran.stderr and not mark.exists()


KEYS = (
    "core.fsmonitor",
    "core.pager",
    "pager.cat-file",
    "pager.rev-parse",
    "core.sshCommand",
    "core.askPass",
    "core.editor",
    "core.alternateRefsCommand",
    "core.gitProxy",
    "diff.external",
    "diff.x.textconv",
    "filter.x.smudge",
    "filter.x.process",
    "credential.helper",
    "gpg.program",
    "uploadpack.packObjectsHook",
    "alias.cat-file",
    "alias.rev-parse",
    "alias.check-ignore",
    "pager.check-ignore",
)


def test_a_repository_whose_own_config_names_programs(project: Path, trap: tuple[Path, Path]) -> None:
    program, mark = trap
    for key in KEYS:
        git(project, "config", key, f"!{program}" if key.startswith("alias") else str(program))
    git(project, "config", "core.hooksPath", str(program.parent))
    (project / ".gitattributes").write_text("*.yaml diff=x filter=x\n")
    (project / ".gitignore").write_text("ignored.yaml\n")
    hooks = project / ".git" / "hooks"
    for name in ("fsmonitor-watchman", "reference-transaction", "post-index-change", "post-checkout", "pre-auto-gc"):
        shutil.copy(program, hooks / name)
    ran = check(project, "configs")
    assert not mark.exists(), mark.read_text()
    assert ran.returncode == 1 and "42" in ran.stdout


@pytest.mark.parametrize("url", ["{project}", "ext::{program}", "ssh://host/x", "file://{project}"])
def test_missing_objects_are_not_fetched(project: Path, trap: tuple[Path, Path], url: str) -> None:
    program, mark = trap
    blob = git(project, "rev-parse", "HEAD~1:configs/run.yaml")
    promisor(project / ".git" / "config", program)
    git(project, "config", "remote.origin.url", url.format(project=project, program=program))
    for key, value in (
        ("protocol.ext.allow", "always"),
        ("protocol.file.allow", "always"),
        ("core.sshCommand", str(program)),
        ("ssh.variant", "simple"),
    ):
        git(project, "config", key, value)
    (project / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    ran = check(project, "configs")
    assert not mark.exists(), mark.read_text()
    assert ran.returncode == 1 and "42" in ran.stdout, "what was there before is unknown: the finding is told"


def test_the_callers_environment_names_no_program(project: Path, trap: tuple[Path, Path], tmp_path: Path) -> None:
    program, mark = trap
    other = tmp_path / "other"
    bare(other, program)
    given = {
        "GIT_DIR": str(other),
        "GIT_WORK_TREE": str(other),
        "GIT_EXTERNAL_DIFF": str(program),
        "GIT_PAGER": str(program),
        "GIT_SSH_COMMAND": str(program),
    }
    ran = check(
        project,
        "configs",
        **given,
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0="core.fsmonitor",
        GIT_CONFIG_VALUE_0=str(program),
    )
    assert ran.returncode == 1 and "42" in ran.stdout and not mark.exists()


@pytest.mark.parametrize("path", [".", "", "{project}/configs", "bin"])
def test_git_is_not_taken_from_the_repository(project: Path, trap: tuple[Path, Path], path: str) -> None:
    program, mark = trap
    for folder in (project, project / "configs", project / "bin"):
        folder.mkdir(exist_ok=True)
        shutil.copy(program, folder / "git")
    ran = check(project, "configs", PATH=f"{path.format(project=project)}{os.pathsep}{os.environ['PATH']}")
    assert ran.returncode == 1 and "42" in ran.stdout and not mark.exists()


def test_replaced_objects_are_not_believed(project: Path) -> None:
    """A replacement may make the revision look as if the fault had been there before."""
    old, new = (git(project, "rev-parse", f"{revision}:configs/run.yaml") for revision in ("HEAD~1", "HEAD"))
    git(project, "replace", old, new)
    assert "42" in check(project, "configs").stdout


def linked(project: Path) -> tuple[Path, str]:
    (project.parent / "link").symlink_to(project, target_is_directory=True)
    return project.parent / "link" / "configs", "run.yaml"


def worktree(project: Path) -> tuple[Path, str]:
    git(project, "worktree", "add", "-q", "../tree", "HEAD")
    return project.parent / "tree", "configs"


def below(project: Path) -> tuple[Path, str]:
    return project / "configs", "."


def outside(project: Path) -> tuple[Path, str]:
    return project, str(project / "configs" / "run.yaml")


@pytest.mark.parametrize("place", [linked, worktree, below, outside])
def test_it_still_works(project: Path, place: Callable[[Path], tuple[Path, str]]) -> None:
    folder, path = place(project)
    assert "42" in check(folder, path).stdout
    git(project, "commit", "-q", "--allow-empty", "-m", "Nothing")
    assert check(folder, path, "--diff-base", "main").returncode == 0
