"""The gate in a real Slurm under attack: waiting times of users and of the controller, and its log."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest
from clock import FOREVER
from cluster import Slurm
from storm import Storm, hostile_script, raise_storm
from test_slurm import BAD, GOOD

pytestmark = pytest.mark.integration

MESSAGE_TIMEOUT = 10
MEMORY = 1024  # MiB, MemoryMax of the unit in docs/gate.md
LATENCY = 1.0  # of sinfo, as docs/gate.md has it
QUIET = 0.2  # the longest wait without checks and without other processes
EMPTY = (
    "function slurm_job_submit(a, b, c) return slurm.SUCCESS end\n"
    "function slurm_job_modify(a, b, c, d) return slurm.SUCCESS end\nreturn slurm.SUCCESS\n"
)
INNOCENT = [GOOD.replace("--lr 1e-4", f"--lr {i + 1}e-5") for i in range(20)]


def clear(slurm: Slurm) -> None:
    slurm.run("scancel", "--state=PENDING")
    end = time.monotonic() + 20
    while slurm.run("squeue", "-h").stdout.strip() and time.monotonic() < end:
        time.sleep(0.2)


def until_refused(slurm: Slurm) -> int:
    """Submit a faulty script until it is refused; how often that was."""
    end = time.monotonic() + 20
    for number in range(1, 100):
        if slurm.sbatch(BAD).returncode == 1:
            return number
        assert time.monotonic() < end
        time.sleep(0.5)
    raise AssertionError


@pytest.fixture(scope="module")
def usual(slurm: Slurm) -> Storm:
    """The same submissions without checks."""
    path = slurm.folder / "job_submit.lua"
    installed = path.read_text()
    slurm.settle()  # not in the second in which it was installed
    path.write_text(EMPTY)
    slurm.settle()
    storm = raise_storm(slurm, [hostile_script(i) for i in range(100)], INNOCENT)
    path.write_text(installed)
    slurm.settle()
    clear(slurm)
    return storm


def under_attack(slurm: Slurm, first: int) -> tuple[Storm, int, bytes]:
    """A burst of submissions to a checker that has just started: their results, later submissions, the checker's
    log."""
    clear(slurm)
    slurm.start_checker()
    storm = raise_storm(slurm, [hostile_script(first + i) for i in range(100)], INNOCENT)
    more = until_refused(slurm)  # the last one carries the remaining audit entries
    assert slurm.checker is not None and slurm.checker.stderr is not None
    log = slurm.checker.stderr
    slurm.stop_checker()
    return storm, more, log.read()


def test_a_hundred_hostile_users_do_not_stop_twenty_innocent_ones(slurm: Slurm, usual: Storm) -> None:
    slurm.audit.unlink(missing_ok=True)
    crowded = max(0.0, usual.longest - QUIET)  # a look may wait behind the whole storm, with or without checks
    submitted, least = 0, float("inf")
    for attempt in range(3):  # the least counts: other work on the machine only adds
        storm, more, log = under_attack(slurm, 100 * attempt)
        told = f"unchecked:\n{usual.told()}\nattacked:\n{storm.told()}"
        print(told)
        replies = storm.replies.values()
        assert all(code == 0 and seconds < MESSAGE_TIMEOUT - 2 for seconds, code, _ in replies), told
        assert storm.queued == set(storm.replies), "lost or ghost: " + ", ".join(storm.queued ^ set(storm.replies))
        unjudged = [" ".join(text.split()) for _, _, text in storm.of("innocent") if "no verdict" in text]
        assert all("the checker is busy" in text for text in unjudged), told
        assert storm.peak_mib < MEMORY, told
        assert log.decode().count("too many checks end without a verdict") <= 2
        submitted += len(replies) + more
        least = min(least, max(storm.latencies))
        if least < LATENCY + crowded:
            break
    assert least < LATENCY + crowded, told
    audited = [json.loads(line) for line in slurm.audit.read_text().splitlines()]
    assert sum(line.get("submissions", 1) for line in audited) == submitted


def test_strangers_are_let_in_unchecked_while_it_lasts_and_checked_after(slurm: Slurm) -> None:
    clear(slurm)
    slurm.start_checker()
    try:
        storm = raise_storm(slurm, [hostile_script(i, ["pipeline"]) for i in range(30)], [])
        assert all(code == 0 and seconds < MESSAGE_TIMEOUT - 2 for seconds, code, _ in storm.replies.values()), (
            storm.told()
        )
        until_refused(slurm)
    finally:
        slurm.stop_checker()


def test_a_script_with_much_text_is_sent_without_a_pause(gated: Slurm) -> None:
    told = []
    for _ in range(6):  # a busy machine may give no verdict in time: the calmest counts
        start = time.monotonic()
        gated.sbatch(GOOD)
        small = time.monotonic() - start
        start = time.monotonic()
        ran = gated.sbatch(BAD + f"# {'x' * 1000}\n" * 1200)
        large = time.monotonic() - start
        told.append((small, large, ran.stderr))
        if large < 1 + 10 * small and ran.returncode == 1:
            break
        time.sleep(3)  # a checker that gave no verdict is not asked again at once
    else:
        raise AssertionError(told)


def test_a_checker_that_hangs_costs_two_waits_and_not_one_for_each_job(gated: Slurm) -> None:
    gated.sbatch(GOOD)
    before, audited = log_of(gated), len(gated.audit.read_text().splitlines())
    assert gated.checker is not None
    os.kill(gated.checker.pid, signal.SIGSTOP)
    try:
        start = time.monotonic()
        rans = [gated.sbatch(GOOD) for _ in range(12)]
        assert time.monotonic() - start < 20
        assert all(ran.returncode == 0 and "let in unchecked" in ran.stderr for ran in rans)
    finally:
        os.kill(gated.checker.pid, signal.SIGCONT)
    assert log_of(gated).removeprefix(before).count("the checker does not answer; it is not asked for") == 1
    time.sleep(10.5)
    assert gated.sbatch(BAD).returncode == 1
    lines = [json.loads(line) for line in gated.audit.read_text().splitlines()[audited:]]
    assert sum(line["submissions"] for line in lines if "submissions" in line) == 12


def log_of(slurm: Slurm) -> str:
    return (slurm.folder / "log/slurmctld.log").read_text(errors="replace")


def test_lines_of_the_log_cannot_be_forged(gated: Slurm) -> None:
    forged = "[2031-01-01T00:00:00.000] error: forged"
    ran = gated.sbatch(BAD, f"--comment=preflight-override=why\n{forged}\r\x1b[2J", f"--job-name=a\n{forged}")
    assert ran.returncode == 0, ran.stderr
    lines = log_of(gated).splitlines()
    assert not [line for line in lines if line.startswith(forged)]
    assert [line for line in lines if "override=why\\x0A[2031" in line and "\\x1B" in line]
    assert len(gated.audit.read_text().splitlines()[-1]) > 100


@pytest.mark.parametrize(
    "script", [hostile_script(0, ["pipeline"]), hostile_script(0, ["case arms"])], ids=["pipeline", "case arms"]
)
def test_rules_that_are_final_refuse_what_has_no_verdict(slurm: Slurm, script: str) -> None:
    slurm.start_checker("--final", "device-count")
    try:
        ran = slurm.sbatch(script, "--comment=preflight-override=please")
        assert ran.returncode == 1 and "some rules are final" in ran.stderr, ran.stderr
    finally:
        slurm.stop_checker()


@pytest.mark.parametrize("options", [(), ("--final", "batch-not-divisible")], ids=["", "final rules"])
def test_a_job_with_a_name_of_any_length_is_judged(slurm: Slurm, options: tuple[str, ...]) -> None:
    slurm.start_checker(*options)
    try:
        ran = slurm.sbatch(GOOD, f"--job-name={'n' * 60_000}")  # which Slurm itself refuses afterwards
        assert "preflight" not in ran.stderr and "too long" in ran.stderr, ran.stderr[-500:]
        assert slurm.sbatch(GOOD, f"--job-name={'n' * 1000}").returncode == 0
        ran = slurm.sbatch(BAD, f"--job-name={'n' * 60_000}")
        assert ran.returncode == 1 and "[device-count]" in ran.stderr, ran.stderr[-500:]
    finally:
        slurm.stop_checker()


@pytest.mark.parametrize("options", [(), ("--final", "batch-not-divisible")], ids=["", "final rules"])
def test_a_reason_of_any_length_lets_nothing_in_unchecked(slurm: Slurm, options: tuple[str, ...]) -> None:
    slurm.start_checker(*options)
    try:
        ran = slurm.sbatch(BAD, f"--comment=preflight-override={'x' * 60_000}")
        assert ran.returncode == 1 and "[device-count]" in ran.stderr, ran.stderr[-500:]
        assert "a reason to override has at most 1000 characters" in " ".join(ran.stderr.split())
        ran = slurm.sbatch(BAD, f"--comment=preflight-override={'x' * 900}")
        last = json.loads(slurm.audit.read_text().splitlines()[-1])
        assert ran.returncode == 0 and last["override"]["reason"] == "x" * 900
        assert slurm.sbatch(GOOD, f"--comment={'x' * 1000}").returncode == 0
        ran = slurm.sbatch(GOOD, f"--comment={'x' * 60_000}")
        assert "preflight" not in ran.stderr and "too long" in ran.stderr, ran.stderr[-500:]
    finally:
        slurm.stop_checker()


def test_without_a_final_rule_users_are_told_and_it_is_audited(gated: Slurm) -> None:
    ran = gated.sbatch(hostile_script(0, ["pipeline"]))
    assert ran.returncode == 0 and "let in unchecked" in ran.stderr
    last = json.loads(gated.audit.read_text().splitlines()[-1])
    assert last["verdict"] == "unknown" and last["problem"] and last["exit"] in (2, 3)


def test_a_client_side_check_that_hangs_is_ended(gated: Slurm) -> None:
    client = gated.client()
    hanging = gated.folder / "hanging"
    hanging.write_text("#!/bin/bash\ntrap '' TERM\nsleep 60 & wait\nwhile :; do sleep 1; done\n")
    hanging.chmod(hanging.stat().st_mode | stat.S_IXUSR)
    path = gated.folder / "client/cli_filter.lua"
    text = path.read_text()
    lines = {"local PREFLIGHT =": f'local PREFLIGHT = "{hanging}"', "local SECONDS =": "local SECONDS = 1"}
    path.write_text(
        "\n".join(next((new for old, new in lines.items() if line.startswith(old)), line) for line in text.splitlines())
    )
    (gated.folder / "job.sh").write_text(GOOD)
    try:
        start = time.monotonic()
        ran = client("sbatch", "--hold", "job.sh")
        assert time.monotonic() - start < FOREVER / 2 and ran.returncode == 0 and "let in unchecked" in ran.stderr, (
            ran.stderr
        )
    finally:
        path.write_text(text)


def test_options_from_the_environment_count(gated: Slurm) -> None:
    script = GOOD.replace("--nnodes 2", "--nnodes $SLURM_NNODES").replace("TP=4", "TP=16")
    assert gated.sbatch(script).returncode == 0
    gated.environment["SBATCH_GPUS_PER_NODE"] = "4"
    try:
        ran = gated.sbatch(script.replace("#SBATCH --gpus-per-node=8\n", ""))
        assert ran.returncode == 1 and "8 devices" in ran.stderr, ran.stderr
    finally:
        del gated.environment["SBATCH_GPUS_PER_NODE"]


def test_what_the_page_calls_unseen_is_unseen(gated: Slurm) -> None:
    """docs/gate.md lists these; a site that reads them knows what the gate cannot stop."""
    inner = gated.folder / "inner.sh"
    inner.write_text(BAD)
    python = "#!/usr/bin/env python3\nimport os\nos.system('torchrun pretrain_gpt.py --tensor-model-parallel-size 3')\n"
    for script in (f"#!/bin/bash\nbash {inner}\n", python):
        ran = gated.sbatch(script, "-N2", "--gpus-per-node=8")
        assert ran.returncode == 0 and not ran.stderr, ran.stderr


def test_a_requeued_job_is_not_judged_again(gated: Slurm, tmp_path: Path) -> None:
    ran = gated.sbatch("#!/bin/bash\nsleep 30\n", "-N1")
    job = ran.stdout.split()[-1]
    gated.run("scontrol", "release", job)
    end = time.monotonic() + 20
    while "RUNNING" not in gated.run("scontrol", "show", "job", job).stdout and time.monotonic() < end:
        time.sleep(0.3)
    asked = len(gated.audit.read_text().splitlines())
    assert gated.run("scontrol", "requeue", job).returncode == 0
    assert len(gated.audit.read_text().splitlines()) == asked
    gated.run("scancel", job)
