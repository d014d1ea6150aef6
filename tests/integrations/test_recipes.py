"""The recipes of the guide, run as a CI system would run them: the action's and the template's commands, hooks,
an install without a network."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
pytestmark = pytest.mark.integration


def bash(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **environment}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=known,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_action_annotates_summarises_and_fails(project: Path, tmp_path: Path) -> None:
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    (tmp_path / "preflight").symlink_to(BIN.parent)
    summary = tmp_path / "summary.md"
    facts = {
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(summary),
        "SARIF": str(tmp_path / "out.sarif"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    ran = bash(steps[-1]["run"], project, PATHS="examples/megatron/model_config.yaml", MORE="--world-size 32", **facts)
    assert ran.returncode == 1
    assert "::error file=examples/megatron/model_config.yaml,line=6,col=17," in ran.stdout
    assert "| examples/megatron/model\\_config.yaml:6 | error |" in summary.read_text()
    assert json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    assert (
        bash(
            steps[-1]["run"], project, PATHS="examples/megatron/sound_8b.yaml", MORE="--world-size 32", **facts
        ).returncode
        == 0
    )


def test_the_template_writes_what_gitlab_reads(project: Path) -> None:
    template = yaml.safe_load((ROOT / "docs/ci/preflight.gitlab-ci.yml").read_text())
    command = template["preflight"]["script"][-1].replace("/tmp/preflight/bin/", f"{BIN}/")
    ran = bash(command, project, PREFLIGHT_PATHS="examples", PREFLIGHT_ARGS="--world-size 32")
    assert ran.returncode == 1
    for name in template["preflight"]["artifacts"]["reports"].values():
        assert (project / name).stat().st_size > 100


FAKE_GH = """#!/bin/sh
# what the comment action asks of gh: the comments are a file, and what is written replaces or makes it
case "$*" in
    *--paginate*) [ ! -f "$COMMENT_FILE" ] || echo 7 ;;
    *"PATCH $COMMENT/7"*|*"POST $COMMENTS"*)
        for word in "$@"; do case $word in body=@*) cp "${word#body=@}" "$COMMENT_FILE" ;; esac; done ;;
    *) exit 1 ;;
esac
"""


def test_the_comment_on_a_pull_request_is_kept_up_to_date(project: Path, tmp_path: Path) -> None:
    steps = yaml.safe_load((ROOT / ".github/actions/diff/action.yml").read_text())["runs"]["steps"]
    (tmp_path / "preflight").symlink_to(BIN.parent)
    gh, comment = tmp_path / "bin" / "gh", tmp_path / "comment"
    gh.parent.mkdir()
    gh.write_text(FAKE_GH)
    gh.chmod(0o755)
    config = project / "examples/megatron/sound_8b.yaml"
    config.write_text(config.read_text().replace("--num-layers: 32", "--num-layers: 30"))
    author = "-c user.name=t -c user.email=t@example.com"
    assert bash(f"git init -q . && git add -A && git {author} commit -qm one", project).returncode == 0
    base = bash("git rev-parse HEAD", project).stdout.strip()
    facts = {
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "BASE": base,
        "GH_TOKEN": "",
    }
    asked = {
        "COMMENTS": "repos/o/p/issues/1/comments",
        "COMMENT": "repos/o/p/issues/comments",
        "COMMENT_FILE": str(comment),
    }
    told = []
    for layers in (32, 36):
        config.write_text(re.sub("--num-layers: [0-9]+", f"--num-layers: {layers}", config.read_text()))
        assert bash(f"git {author} commit -qam more", project).returncode == 0
        for step in steps[-2:]:
            ran = bash(step["run"].replace("gh api", f"{gh} api"), project, PATHS="", MORE="", **facts, **asked)
            assert ran.returncode == 0, ran.stderr
        told.append(comment.read_text())
    assert all(text.startswith("<!-- preflight diff -->\n## preflight: ") for text in told)
    assert "| `--num-layers` | 30 | 32 |" in told[0] and "| `--num-layers` | 30 | 36 |" in told[1]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a faulty config, and a batch script."""
    shutil.copy(ROOT / "examples/megatron/model_config.yaml", tmp_path / "model_config.yaml")
    shutil.copy(ROOT / "examples/megatron/train_8b_faults.sh", tmp_path / "train.sbatch")
    (tmp_path / "train.sbatch").chmod(0o644)
    (tmp_path / "notes.yaml").write_text("title: nothing to do with training\n")
    assert bash("git init -q -b main && git add -A", tmp_path).returncode == 0
    return tmp_path


def hooked(repository: Path, hooks: list[dict[str, object]]) -> subprocess.CompletedProcess[str]:
    if shutil.which("pre-commit", path=f"{BIN}:{os.environ['PATH']}") is None:
        pytest.skip("pre-commit is not installed")
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": hooks}]}))
    return bash("git add -A && pre-commit run --all-files", repository, PRE_COMMIT_HOME=str(repository / ".cache"))


@pytest.mark.parametrize(
    ("hook", "file"), [("preflight-system", "model_config.yaml"), ("preflight-slurm", "train.sbatch")]
)
def test_the_hooks_find_their_files_without_a_network(repository: Path, hook: str, file: str) -> None:
    published = next(
        item for item in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()) if item["id"] == hook
    )
    ran = hooked(repository, [{**published, "language": "system"}])
    assert ran.returncode == 1 and f"{file}:" in ran.stdout, ran.stdout + ran.stderr


def test_the_guides_local_hook_works(repository: Path) -> None:
    block = (ROOT / "docs/ci.md").read_text().split("```yaml\n")[-1].split("```")[0]
    ran = hooked(repository, yaml.safe_load(block)["repos"][0]["hooks"])
    assert ran.returncode == 1 and "model_config.yaml:6:17: error" in ran.stdout


def test_a_wheelhouse_installs_without_an_index(tmp_path: Path, project: Path) -> None:
    copied = bash(f"mkdir copy && git -C {ROOT} archive HEAD | tar -x -C copy", tmp_path)
    assert copied.returncode == 0, copied.stderr
    ran = bash(f"{sys.executable} -m pip wheel -q ./copy --wheel-dir wheelhouse", tmp_path)
    if ran.returncode:
        pytest.skip(f"no package index is reached: {ran.stderr[-200:]}")
    offline = {"PIP_NO_INDEX": "1", "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    install = (
        f"{sys.executable} -m venv {tmp_path}/venv && {tmp_path}/venv/bin/pip install -q --no-index "
        "--find-links wheelhouse preflight-llm"
    )
    ran = bash(install, tmp_path, **offline)
    assert ran.returncode == 0, ran.stderr
    ran = bash(
        f"{tmp_path}/venv/bin/preflight check examples/megatron/model_config.yaml --world-size 32", project, **offline
    )
    assert ran.returncode == 1 and "layers-over-stages" in ran.stdout
