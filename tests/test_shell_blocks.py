"""Every command in a `sh` block of the README and the guide runs as written, in a project with the files it names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from console import ENGLISH, ROOT

BLOCK = re.compile(r"^( *)```(?:sh|bash)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INSTALLS = "installs packages; tests/packaging/test_install.py does the same in fresh environments"
WHEELHOUSE = "tests/integrations/test_recipes.py::test_a_wheelhouse_installs_without_an_index runs it"
NOT_RUN = {
    "pip install . && preflight check examples/mindformers/run_llama2_7b.yaml": INSTALLS,
    "pip install -e '.[test]' && pytest": "runs this suite",
    "pip wheel . --wheel-dir wheelhouse": WHEELHOUSE,
    "pip install --no-index --find-links wheelhouse preflight-llm": WHEELHOUSE,
    "python3 -m venv /opt/preflight && /opt/preflight/bin/pip install '.[layouts]'": INSTALLS,
    "systemctl enable --now preflight-gate": "needs systemd; tests/slurm starts the service itself",
    "/opt/preflight/bin/preflight gate-install /etc/slurm --socket /run/preflight/gate.sock": (
        "writes to /etc; tests/slurm/cluster.py installs into the folder of its cluster"
    ),
}
"""Command → why it is not run here."""


def commands() -> dict[str, str]:
    """Command → the page that shows it."""
    found = {}
    for page in ENGLISH:
        for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
            for line in match[2].splitlines():
                found[re.sub(r"\s+# .*$", "", line.strip())] = page.name
    return found


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ["bash", "-e", "-o", "pipefail", "-c", command]
    environment = {**os.environ, "PATH": path}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A branch with one change since origin/main, and another that is not committed."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("configs", "configs-before", "configs-after", "scripts"):
        (folder / name).mkdir()
    sound = ROOT / "examples" / "megatron" / "sound_8b.yaml"
    for name in ("old.yaml", "new.yaml", "configs/a.yaml", "configs-before/a.yaml", "configs-after/a.yaml"):
        shutil.copy(sound, folder / name)
    shutil.copy(ROOT / "examples" / "megatron" / "train_8b.sh", folder / "scripts")
    shutil.copy(ROOT / "examples" / "megatron" / "train_8b.sh", folder / "train.sh")
    shutil.copy(ROOT / "examples" / "mindformers" / "run_llama2_7b.yaml", folder / "train.yaml")
    commit = "git -c user.name=t -c user.email=t@example.com commit -qam"
    made = shell(
        f"git init -q -b main && git add -A && {commit} one && git update-ref refs/remotes/origin/main HEAD && "
        f"git checkout -q -b change && sed -i 's/--lr: .*/--lr: 1.0e-4/' configs/a.yaml && {commit} two && "
        "sed -i 's/--lr: .*/--lr: 2.0e-4/' configs/a.yaml new.yaml configs-after/a.yaml",
        folder,
    )
    assert made.returncode == 0, made.stderr
    return folder


def test_commands_that_are_not_run_are_still_shown() -> None:
    assert not NOT_RUN.keys() - commands().keys()


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in commands() if command not in NOT_RUN])
def test_a_command_runs_as_written(command: str, project: Path) -> None:
    """With an answer, not with wrong usage: the exit code is 0, or 1 for the findings of a check."""
    ran = shell(command, project)
    assert ran.returncode in (0, 1), f"{commands()[command]}: {ran.stderr}"
    assert ran.stdout
    assert "--lr" in ran.stdout or not command.startswith("preflight diff")
