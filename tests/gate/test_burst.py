"""The part inside slurmctld: job_submit.lua in a Lua interpreter without Slurm, with a slow checker."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from preflight.gate.slurm_plugins import fill

LUA = next((path for name in ("lua5.1", "lua5.3", "lua5.4", "lua") if (path := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(LUA is None, reason="no Lua here")
SLURM = """
told, ERROR, SUCCESS = {}, -1, 0
slurm = { ERROR = ERROR, SUCCESS = SUCCESS, NO_VAL = 4294967294 }
function slurm.log_user(form, text) told[#told + 1] = text end
function slurm.log_info(...) end
function submit(uid)
  told = {}
  local code = slurm_job_submit({ script = "#!/bin/bash\\ntrue\\n", name = "a" }, nil, uid)
  print(uid, code, table.concat(told, " "))
end
"""
CURL = """#!/bin/sh
sleep 0.04
echo asked >> {folder}/asked
echo '{answer}'
for word; do
  case "$word" in *http_code*) word=${{word#??}}; printf '\\n%s200' "${{word%%%*}}" ;; esac
done
"""


def submissions(folder: Path, users: str, answer: str, *, open_on_failure: bool = True) -> list[tuple[str, int, str]]:
    """User, code and words of each submission, in order. users: Lua code that submits."""
    curl = folder / "curl"
    curl.write_text(CURL.format(folder=folder, answer=answer))
    curl.chmod(0o755)
    values = {"CURL": curl, "SOCKET": "/nowhere", "SECONDS": 2, "OPEN": open_on_failure}
    (folder / "run.lua").write_text(
        SLURM + fill("job_submit", values).replace("\nreturn slurm.SUCCESS\n", "\n") + users
    )
    assert LUA is not None
    ran = subprocess.run([LUA, "run.lua"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    lines = [line.split("\t") for line in ran.stdout.splitlines()]
    return [(user, int(code), told) for user, code, told in lines]


def unasked(found: list[tuple[str, int, str]]) -> int:
    return sum("the checker is busy" in told for _, _, told in found)


def test_many_strangers_at_once_are_not_all_asked_about(tmp_path: Path) -> None:
    found = submissions(tmp_path, "for uid = 1, 60 do submit(uid) end", "0 none")
    assert 1 <= 60 - unasked(found) <= 5
    assert all(code == 0 for _, code, _ in found)


def test_users_whose_runs_had_a_verdict_are_asked_about_for_longer(tmp_path: Path) -> None:
    found = submissions(tmp_path, "for uid = 1, 60 do submit(uid) end", "0")
    assert 6 <= 60 - unasked(found) <= 15


def test_strangers_take_nothing_from_users_who_are_known(tmp_path: Path) -> None:
    known = "for i = 1, 2 do submit(7) end "
    found = submissions(tmp_path, f"{known} for uid = 100, 150 do submit(uid) end {known}", "0 none")
    assert unasked(found[-2:]) == 0 and unasked(found) > 40


def test_submissions_with_a_pause_between_them_are_all_asked_about(tmp_path: Path) -> None:
    found = submissions(tmp_path, "for i = 1, 15 do submit(i) os.execute('sleep 0.07') end", "0 none")
    assert unasked(found) == 0


def test_where_rules_are_final_what_is_not_asked_about_is_refused(tmp_path: Path) -> None:
    found = submissions(tmp_path, "for uid = 1, 60 do submit(uid) end", "0 none final")
    refused = [told for _, code, told in found if code]
    assert len(refused) == unasked(found) > 40 and all("rules are final" in told for told in refused)


def test_a_closed_gate_refuses_what_is_not_asked_about(tmp_path: Path) -> None:
    found = submissions(tmp_path, "for uid = 1, 60 do submit(uid) end", "0 none", open_on_failure=False)
    assert sum(code != 0 for _, code, _ in found) == unasked(found) > 40
