"""Slurm's information about a job: the location of its logs and how it ended. Its commands run only if a call names a
job."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError

ID = re.compile(r"\d+(?:_\d+)?(?:\+\d+)?")
SECONDS = 20
STATES = {
    "OUT_OF_MEMORY": "oom_kill: the job ended with OUT_OF_MEMORY",
    "TIMEOUT": "the job was CANCELLED DUE TO TIME LIMIT",
    "PREEMPTED": "the job was CANCELLED DUE TO PREEMPTION",
    "NODE_FAIL": "the job was CANCELLED DUE TO NODE FAILURE",
}
"""The state of a job ended by the scheduler, as its log would describe it."""


class OfJob(NamedTuple):
    """The scheduler's report on a job: its existing logs, and lines on how it ended."""

    logs: tuple[str, ...]
    said: tuple[str, ...]


def logs_of_job(id: str) -> OfJob:
    """The scheduler's report on a job. Raises InputError if there is no such job, or its commands are missing."""
    if not ID.fullmatch(id):
        raise InputError(f"--job {id} is not a Slurm job id")
    record = _asked("scontrol", "show", "job", "-o", id) or ""
    account = _asked("sacct", "-j", id, "-n", "-P", "-o", "State,ExitCode,StdOut,StdErr") or ""
    if not record and not account:
        raise InputError(f"--job {id}: neither scontrol nor sacct knows this job")
    paths = re.findall(r"\bStd(?:Out|Err)=(\S+)", record)
    rows = [line.split("|") for line in account.splitlines() if line.count("|") >= 3]
    paths += [path for row in rows for path in row[2:4] if path.startswith("/")]
    states = {row[0].split()[0] for row in rows if row[0]} | set(re.findall(r"\bJobState=(\w+)", record))
    logs = tuple(path for path in dict.fromkeys(_named(path, id) for path in paths) if os.path.isfile(path))
    said = tuple(words for state, words in STATES.items() if state in states)
    if not logs and not said:
        raise InputError(
            f"--job {id}: its logs are not on this machine, and its state shows no cause; pass the paths of the logs"
        )
    return OfJob(logs, said)


def _named(path: str, id: str) -> str:
    job, _, task = id.partition("_")
    return path.replace("%j", job).replace("%A", job).replace("%a", task or "0")


def _asked(*words: str) -> str | None:
    """The output of a command; None if it is missing, fails or takes too long."""
    program = shutil.which(words[0])
    if program is None or not os.path.isabs(program):
        return None
    try:
        done = subprocess.run(
            [program, *words[1:]], capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
