"""Limits of git for `--diff-base` and `diff` in an untrusted repository: time, memory and output."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bounded import COMMAND, GRAPH
from clock import FOREVER

from preflight.checking.findings_since_revision import _new_lines
from preflight.source import untrusted_repository
from preflight.source.source_file import InputError
from preflight.source.untrusted_repository import Repository, TooLong, TooMuch, run_bounded

resource = pytest.importorskip("resource", reason="needs limits of processes")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None or os.name == "nt", reason="needs git and pipes"),
]
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.com")


def git(folder: Path, *words: str, given: str = "") -> str:
    command = ["git", *IDENTITY, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, input=given).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository of two commits: a sound config, then a faulty one."""
    folder = tmp_path / "project"
    (folder / "configs").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for text in (GRAPH, GRAPH.replace("pipeline_stage: 4", "pipeline_stage: 42")):
        (folder / "configs" / "run.yaml").write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "Change")
    return folder


def nested(folder: Path) -> str:
    """A commit of some kilobytes with a config, and ten million files in trees of trees."""
    blob = git(folder, "hash-object", "-w", "--stdin", given=GRAPH)
    below = git(folder, "mktree", given="".join(f"100644 blob {blob}\tfile{i}.yaml\n" for i in range(10)))
    for _ in range(6):
        below = git(folder, "mktree", given="".join(f"040000 tree {below}\ttree{i}\n" for i in range(10)))
    configs = git(folder, "rev-parse", "HEAD:configs")
    top = git(folder, "mktree", given=f"040000 tree {below}\ta\n040000 tree {configs}\tconfigs\n")
    return git(folder, "commit-tree", top, "-p", "HEAD", "-m", "Nest")


def called(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "preflight", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=2 * FOREVER, check=False)


def test_a_commit_of_nested_trees(project: Path) -> None:
    commit = nested(project)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = called(project, "diff", f"HEAD~1..{commit}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ran.returncode == 2
    assert "git ls-tree" in ran.stderr and len(ran.stderr) < 300
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 30


def test_one_path_of_a_commit_of_nested_trees(project: Path) -> None:
    commit = nested(project)
    for path in ("configs/run.yaml", "configs"):
        ran = called(project, "diff", f"HEAD~1..{commit}", path)
        assert ran.returncode == 1 and "pipeline_stage" in ran.stdout, ran.stderr
    assert Repository(project).tree(commit, [project / "configs"]).keys() == {"configs/run.yaml"}


def test_what_lies_outside_is_not_listed(project: Path, tmp_path: Path) -> None:
    repo = Repository(project)
    commit = repo.commit("HEAD")
    assert repo.tree(commit, [tmp_path / "elsewhere"]) == {}
    assert repo.tree(commit, [tmp_path]).keys() == repo.tree(commit).keys() == {"configs/run.yaml"}


@pytest.mark.parametrize(
    "place", ["HEAD", "packed-refs", "shallow", "info/grafts", "objects/info/alternates", "config"]
)
@pytest.mark.parametrize("command", [["check", "configs/run.yaml", "--diff-base", "HEAD~1"], ["diff", "HEAD~1..HEAD"]])
def test_pipes_in_place_of_what_git_opens(project: Path, place: str, command: list[str]) -> None:
    pipe = project / ".git" / place
    pipe.parent.mkdir(parents=True, exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    start = time.monotonic()
    ran = called(project, *command)
    assert ran.returncode == 2 and time.monotonic() - start < FOREVER
    assert "is not a regular file, so git is not called" in ran.stderr
    assert "core.fsmonitor" not in ran.stderr and len(ran.stderr) < 400


def test_a_pipe_that_nothing_foresees(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a loose object: git waits and is killed."""
    tree = git(project, "rev-parse", "HEAD^{tree}")
    loose = project / ".git" / "objects" / tree[:2] / tree[2:]
    loose.unlink()
    os.mkfifo(loose)
    monkeypatch.setattr(untrusted_repository, "SECONDS", 0.5)
    repo = Repository(project)
    with pytest.raises(InputError, match=r"^git ls-tree does not finish within") as caught:
        repo.tree(git(project, "rev-parse", "HEAD"), [])
    assert "core." not in str(caught.value)


def test_a_worktree_is_still_read(project: Path, tmp_path: Path) -> None:
    git(project, "worktree", "add", "-q", str(tmp_path / "other"), "HEAD~1")
    assert len(Repository(tmp_path / "other").commit("HEAD")) == 40
    (project / ".git" / "packed-refs").unlink(missing_ok=True)
    os.mkfifo(project / ".git" / "packed-refs")
    with pytest.raises(InputError, match="not a regular file"):
        Repository(tmp_path / "other")


def run(text: str, seconds: float = FOREVER, most: int = 1_000) -> bytes:
    ran = run_bounded([sys.executable, "-c", text], Path.cwd(), dict(os.environ), b"given", seconds, most)
    return ran.stdout if not ran.returncode else ran.stderr


def test_a_program_is_bounded() -> None:
    assert run("import sys; print(sys.stdin.read())") == b"given\n"
    with pytest.raises(TooMuch):
        run("print('x' * 2_000)")
    with pytest.raises(TooMuch):
        run("while True: print('x' * 2_000)")
    with pytest.raises(TooLong):
        run("import time; time.sleep(60)", seconds=0.3)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the system bounds no memory of others")
def test_a_program_is_bounded_in_its_memory() -> None:
    assert b"MemoryError" in run("import time; time.sleep(0.3); data = bytearray(3 << 30)", most=10_000)


def test_comparing_lines_ends(quick: None) -> None:
    same = "a\n" * 50_000
    assert _new_lines("x\n" + same, same + "y\n")
    assert _new_lines("a\nb\nc\n", "a\nx\nc\n") == {2}
    assert _new_lines("a\nb\n" * 3, "a\nb\n" * 3) == frozenset()
    assert _new_lines("a\na\n", "a\na\na\n") == {3}


def test_a_script_of_equal_lines_against_a_revision(project: Path) -> None:
    for lines in ("# a\n" * 100_000, "# a\n" * 100_001 + f"{COMMAND} --tensor-model-parallel-size 3\n"):
        (project / "run.sh").write_text("set -e\n" + lines)
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", "Change")
    ran = called(project, "check", "run.sh", "--diff-base", "HEAD~1", "--world-size", "8")
    assert ran.returncode == 1 and "device-count" in ran.stdout, ran.stderr
