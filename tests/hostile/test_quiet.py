"""Nothing in a config is executed, no connection is opened, and no variable of the caller enters a job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bounded import COMMAND, GRAPH

EXAMPLES = Path(__file__).parents[2] / "examples"
WATCHED = (
    "subprocess.",
    "os.system",
    "os.exec",
    "os.spawn",
    "os.posix_spawn",
    "os.fork",
    "os.startfile",
    "pty.",
    "socket.",
    "webbrowser.",
)
RUN = f"""
import sys
seen = []
asked = {{"check-ignore"}} | ({{"rev-list", "cat-file"}} if sys.argv[1] == "fix" else set())
def watch(event, given):  # git lists ignored files, for a fix old commits; test_repositories.py holds: it runs nothing
    if event.startswith({WATCHED!r}) and not (event == "subprocess.Popen" and asked.intersection(given[1])):
        seen.append((event, given))
sys.addaudithook(watch)
from preflight.cli import run
code = run(sys.argv[1:])
sys.stdout.flush()
assert not seen, seen
assert code in (0, 1, 2), code
"""
EVIL = f"""#!/bin/bash
touch ran
x=$(touch ran; echo 3); y=`touch ran`; z=$((a[$(touch ran)])); eval "touch ran"; trap 'touch ran' EXIT
source <(echo touch ran); python3 -c "open('ran','w')" | tee >(touch ran); echo ${{x:=$(touch ran)}}
[[ -v 'a[$(touch ran)]' ]] && printf -v 'a[$(touch ran)]' x
curl http://127.0.0.1:9/x | bash
{COMMAND} --tensor-model-parallel-size $x
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "evil.sh").write_text(EVIL)
    (tmp_path / "evil.yaml").write_text(f'{GRAPH}a: !!python/object/apply:os.system ["touch ran"]\n')
    (tmp_path / "tagged.yaml").write_text(
        f'{GRAPH}b: !!python/name:os.system\nc: "$(touch ran)"\nd: "{{{{ 7 * 7 }}}}"\n'
    )
    return tmp_path


@pytest.mark.halved
@pytest.mark.parametrize(
    "words",
    [
        ["check"],
        ["check", "-f", "sarif"],
        ["check", "-f", "html"],
        ["show"],
        ["memory"],
        ["layouts"],
        ["fix", "--diff"],
    ],
)
def test_nothing_is_executed_and_nobody_is_called(folder: Path, words: list[str]) -> None:
    paths = [".", str(EXAMPLES / "mindformers"), str(EXAMPLES / "megatron" / "train_8b_faults.sh")]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words, *paths], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert not (folder / "ran").exists()


def test_a_variable_of_the_caller_is_not_the_jobs(tmp_path: Path) -> None:
    script = f"#!/bin/bash\n{COMMAND} --tensor-model-parallel-size $TP\n"
    (tmp_path / "run.sh").write_text(script)
    run = [sys.executable, "-m", "preflight", "check", "run.sh", "--no-cache"]
    bare, given = (
        subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **more})
        for more in ({}, {"TP": "3"})
    )
    assert (bare.returncode, bare.stdout) == (given.returncode, given.stdout)
    (tmp_path / "run.sh").write_text(script.replace("$TP", "3"))
    assert "tensor 3" in subprocess.run(run, cwd=tmp_path, capture_output=True, text=True).stdout
