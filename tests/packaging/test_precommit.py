"""The hooks with the real pre-commit, in a throw-away repository: a commit that is blocked, one that is fixed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from environments import run

import preflight

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("pre-commit") is None, reason="pre-commit is not installed"),
]

HEAD = (
    "MODEL_ARGS:\n  --num-layers: 32\n  --hidden-size: 4096\n  --num-attention-heads: 32\n  --seq-length: 4096\n"
    "  --max-position-embeddings: 4096\n"
)
GOOD = HEAD + "  --micro-batch-size: 1\n  --global-batch-size: 64\n  --train-iters: 10\n  --lr: 1.0e-4\n"
BLOCKED = GOOD + "  --tensor-model-parallel-size: 3\n"
FIXABLE = GOOD + "  --recompute-granularity: full\n  --recompute-num-layers: 1\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for words in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "t"],
        ["config", "user.email", "t@example.com"],
    ):
        run(["git", *words], folder)
    (folder / "notes.yaml").write_text("title: nothing to do with training\n")
    return folder


def commit(folder: Path, name: str, text: str, code: int) -> str:
    (folder / name).write_text(text)
    run(["git", "add", "-A"], folder)
    return run(["git", "commit", "-m", "Change"], folder, code)


def test_try_repo_finds_the_fault(repository: Path, checkout: Path) -> None:
    (repository / "model_config.yaml").write_text(BLOCKED)
    run(["git", "add", "-A"], repository)
    told = run(["pre-commit", "try-repo", checkout, "preflight", "--all-files"], repository, 1)
    assert "32 attention heads are not divisible by 3 tensor-parallel ranks [heads-not-divisible]" in told


def test_commits_are_blocked_and_fixed(repository: Path, checkout: Path) -> None:
    tag = f"v{preflight.__version__}"
    run(["git", "tag", "-f", tag], checkout)  # as a user names a release
    hooks = f"repos:\n- repo: file://{checkout}\n  rev: {tag}\n  hooks:\n  - id: preflight-fix\n  - id: preflight\n"
    (repository / ".pre-commit-config.yaml").write_text(hooks)
    run(["pre-commit", "install"], repository)
    assert "Passed" in commit(repository, "model_config.yaml", GOOD, 0)
    told = commit(repository, "model_config.yaml", BLOCKED, 1)
    assert "heads" in told
    told = commit(repository, "model_config.yaml", FIXABLE, 1)
    assert "files were modified by this hook" in told
    fixed = (repository / "model_config.yaml").read_text()
    assert fixed.startswith(FIXABLE)
    assert "  --recompute-method: uniform\n" in fixed
    commit(repository, "model_config.yaml", fixed, 0)
