"""The gate in a real Slurm: waiting jobs that get other devices are judged again."""

from __future__ import annotations

import json

import pytest
from test_slurm import BAD, GOOD

pytestmark = pytest.mark.integration


def queued(slurm, script, *options):
    ran = slurm.sbatch(script, *options)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()[-1]


FITS_TWO = GOOD.replace("--nnodes 2", "--nnodes $SLURM_NNODES").replace("TP=4", "TP=16")


def test_a_change_of_a_waiting_jobs_devices_is_judged_like_a_submission(gated):
    job = queued(gated, FITS_TWO)
    ran = gated.run("scontrol", "update", f"jobid={job}", "numnodes=1-1")
    # before Slurm 23.02 only the log has the reason
    told = ran.stderr + (gated.folder / "log/slurmctld.log").read_text()
    assert ran.returncode != 0 and "8 devices are not a multiple of tensor 16" in " ".join(told.split()), told
    assert 'scontrol update ... comment="preflight-override=WHY"' in told
    assert "NumNodes=2" in gated.run("scontrol", "show", "job", job).stdout
    assert gated.run("scontrol", "update", f"jobid={job}", "gres=gpu:4").returncode != 0
    assert (
        gated.run(
            "scontrol", "update", f"jobid={job}", "numnodes=1-1", "comment=preflight-override=a smoke test"
        ).returncode
        == 0
    )
    last = json.loads(gated.audit.read_text().splitlines()[-1])
    assert (last["override"]["reason"], last["allocation"]["world"]) == ("a smoke test", 8)


def test_a_change_that_fits_and_one_that_is_not_about_devices_pass(gated):
    job = queued(gated, GOOD.replace("--nnodes 2", "--nnodes $SLURM_NNODES"))
    assert gated.run("scontrol", "update", f"jobid={job}", "numnodes=1-1").returncode == 0
    refused = queued(gated, BAD, "--comment=preflight-override=as it is")
    asked = len(gated.audit.read_text().splitlines())
    for change in ("timelimit=10", "comment=none", "nice=5", "jobname=x"):
        assert gated.run("scontrol", "update", f"jobid={refused}", change).returncode == 0, change
    assert len(gated.audit.read_text().splitlines()) == asked
    assert gated.run("scontrol", "update", f"jobid={refused}", "numnodes=1-1").returncode != 0


def test_without_the_checker_a_change_passes(slurm):
    ran = slurm.sbatch(FITS_TWO)
    ran = slurm.run("scontrol", "update", f"jobid={ran.stdout.split()[-1]}", "numnodes=1-1")
    assert ran.returncode == 0, ran.stderr
