"""The gate in a real Slurm: refused jobs, queued jobs, and an absent checker."""

from __future__ import annotations

import json
import operator
import os
import signal
import subprocess

import pytest

pytestmark = pytest.mark.integration

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=gpt
#SBATCH -N2
#SBATCH --gpus-per-node=8
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP={tensor}
ARGS="
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --bf16
  --seq-length 4096 --max-position-embeddings 4096 --lr 1e-4 --train-iters 100
  --micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size $TP
"
srun torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py $ARGS
"""
GOOD, BAD = SCRIPT.format(tensor=4), SCRIPT.format(tensor=3)


def test_a_good_script_is_queued(gated):
    ran = gated.sbatch(GOOD)
    assert ran.returncode == 0 and "Submitted batch job" in ran.stdout, ran.stderr


def test_a_bad_script_is_refused_with_the_numbers(gated):
    ran = gated.sbatch(BAD)
    assert ran.returncode == 1
    assert "16 devices are not a multiple of tensor 3" in ran.stderr and "[device-count]" in ran.stderr
    assert all(len(line) <= 80 for line in ran.stderr.splitlines()), ran.stderr


def test_a_refusal_contains_the_fix(gated):
    ran = gated.sbatch(GOOD.replace("--global-batch-size 64", "--global-batch-size 63"))
    assert ran.returncode == 1 and "fix: set the global batch size to 64" in ran.stderr


def test_an_override_with_a_reason_is_queued_and_audited(gated):
    ran = gated.sbatch(BAD, "--comment=preflight-override=debugging the loader")
    assert ran.returncode == 0, ran.stderr
    last = json.loads(gated.audit.read_text().splitlines()[-1])
    assert last["override"]["reason"] == "debugging the loader" and "device-count" in last["override"]["rules"]


def test_an_override_without_a_reason_is_refused(gated):
    assert gated.sbatch(BAD, "--comment=preflight-override=").returncode == 1


def test_stdin_and_wrap_are_seen_by_the_controller(gated):
    assert gated.run("sbatch", "--hold", text=BAD).returncode == 1
    words = ("--nnodes", "2", "--nproc-per-node", "8", "pretrain_gpt.py", "--tensor-model-parallel-size", "3")
    sizes = (
        "--num-layers 4 --hidden-size 64 --num-attention-heads 3 --seq-length 64 --max-position-embeddings 64 "
        "--micro-batch-size 1 --lr 1 --train-iters 1"
    )
    ran = gated.run("sbatch", "--hold", "-N2", "--gpus-per-node=8", "--wrap", f"torchrun {' '.join(words)} {sizes}")
    assert ran.returncode == 1 and "device-count" in ran.stderr


def test_the_allocation_counts_not_only_the_script(gated):
    fits_two = GOOD.replace("--nnodes 2", "--nnodes $SLURM_NNODES").replace("TP=4", "TP=16")
    assert gated.sbatch(fits_two).returncode == 0
    ran = gated.sbatch(fits_two, "-N1")
    assert ran.returncode == 1 and "8 devices" in ran.stderr


def test_arrays_are_checked(gated):
    assert gated.sbatch(GOOD, "--array=0-3").returncode == 0
    assert gated.sbatch(BAD, "--array=0-3").returncode == 1


def test_heterogeneous_jobs_are_not_judged_by_a_component(gated):
    ran = gated.sbatch(
        GOOD.replace("#SBATCH --gpus-per-node=8\n", "#SBATCH --gpus-per-node=8\n#SBATCH hetjob\n#SBATCH -N1\n")
    )
    assert ran.returncode == 0, ran.stderr


def test_components_given_on_the_command_line_are_not_judged_by_the_scripts_own_lines(gated):
    script = GOOD.replace("-N2", "-N1").replace("--nnodes 2", "--nnodes $SLURM_NNODES").replace("TP=4", "TP=16")
    assert gated.sbatch(script).returncode == 1
    (gated.folder / "job.sh").write_text(script)
    ran = gated.run("sbatch", "--hold", "-N1", "--gpus-per-node=8", ":", "-N1", "--gpus-per-node=8", "job.sh")
    assert ran.returncode == 0, ran.stderr


def test_rules_that_no_override_lifts(slurm):
    slurm.start_checker("--final", "device-count")
    try:
        ran = slurm.sbatch(BAD, "--comment=preflight-override=please")
        assert ran.returncode == 1 and "this cannot be overridden" in ran.stderr
    finally:
        slurm.stop_checker()


def test_a_gate_that_only_reports(slurm):
    slurm.start_checker("--report-only")
    try:
        ran = slurm.sbatch(BAD)
        assert ran.returncode == 0 and "would be refused" in ran.stderr
        assert json.loads(slurm.audit.read_text().splitlines()[-1])["verdict"] == "refuse"
    finally:
        slurm.stop_checker()


def test_the_client_side_gate_judges_before_the_controller_is_asked(slurm):
    """A private configuration with the filter; no resident checker is needed."""
    client = slurm.client()
    path = slurm.folder / "job.sh"
    path.write_text(BAD)
    ran = client("sbatch", "--hold", str(path))
    assert ran.returncode == 1 and "[device-count]" in ran.stderr, ran.stderr
    assert all(len(line) <= 80 for line in ran.stderr.splitlines()), ran.stderr
    assert client("sbatch", "--hold", "--comment=preflight-override=let me", str(path)).returncode == 0
    path.write_text(GOOD)
    assert client("sbatch", "--hold", str(path)).returncode == 0
    assert client("sbatch", "--hold", "--wrap", "echo hello").returncode == 0


def test_the_client_side_gate_does_not_judge_components_by_their_own_allocation(slurm):
    client, path = slurm.client(), slurm.folder / "job.sh"
    path.write_text(GOOD.replace("TP=4", "TP=16").replace("--nnodes 2", "--nnodes $SLURM_NNODES"))
    assert client("sbatch", "--hold", "-N1", str(path)).returncode == 1
    ran = client("sbatch", "--hold", "-N1", "--gpus-per-node=8", ":", "-N1", "--gpus-per-node=8", str(path))
    assert ran.returncode == 0, ran.stderr
    path.write_text(
        GOOD.replace("-N2", "-N1").replace("--gpus-per-node=8\n", "--gpus-per-node=8\n#SBATCH hetjob\n#SBATCH -N1\n", 1)
    )
    ran = client("sbatch", "--hold", str(path))
    assert ran.returncode == 0, ran.stderr


def test_a_job_that_is_no_training_is_queued(gated):
    assert gated.sbatch("#!/bin/bash\necho hello\n", "-N1").returncode == 0


def test_a_placeholder_is_never_refused(gated):
    assert gated.sbatch(GOOD.replace("--nnodes 2", '--nnodes "$1"').replace("TP=4", "TP=$2")).returncode == 0


def test_without_the_checker_jobs_pass_and_say_so(slurm):
    ran = slurm.sbatch(BAD)
    assert ran.returncode == 0 and "let in unchecked" in ran.stderr


def test_without_the_checker_a_closed_gate_refuses(slurm):
    slurm.install("--closed")
    slurm.settle()
    try:
        ran = slurm.sbatch(GOOD)
        assert ran.returncode == 1 and "refused" in ran.stderr
    finally:
        slurm.install()
        slurm.settle()


def test_a_hanging_checker_does_not_stall_the_controller(gated):
    """The server process is stopped: curl gives up at its deadline, and sinfo answers meanwhile."""
    os.kill(gated.checker.pid, signal.SIGSTOP)
    try:
        with subprocess.Popen(
            ["sbatch", "--hold", "job.sh"],
            cwd=gated.folder,
            env=gated.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as waiting:
            assert gated.run("squeue").returncode == 0
            _, told = waiting.communicate(timeout=60)
        assert b"let in unchecked" in told
    finally:
        os.kill(gated.checker.pid, signal.SIGCONT)
    assert gated.sbatch(BAD).returncode == 1


def test_a_killed_worker_is_replaced(gated):
    workers = gated.run("pgrep", "-P", str(gated.checker.pid)).stdout.split()
    for worker in workers:
        os.kill(int(worker), signal.SIGKILL)
    gated.sbatch(GOOD)
    gated.sbatch(GOOD)
    assert gated.sbatch(BAD).returncode == 1


def test_a_bad_edit_of_the_lua_file_leaves_the_gate_in_force(gated):
    path = gated.folder / "job_submit.lua"
    good = path.read_text()
    path.write_text("this is not Lua\n")
    gated.settle()
    try:
        assert gated.sbatch(BAD).returncode == 1
        assert gated.run("sinfo").returncode == 0
    finally:
        path.write_text(good)
        gated.settle()


def test_many_at_once_are_all_answered(gated):
    (gated.folder / "bad.sh").write_text(BAD)
    (gated.folder / "good.sh").write_text(GOOD)
    running = [
        subprocess.Popen(
            ["sbatch", "--hold", "good.sh" if i % 2 else "bad.sh"],
            cwd=gated.folder,
            env=gated.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(20)
    ]
    said = [process.communicate(timeout=60)[1] for process in running]
    codes = [process.returncode for process in running]
    assert codes[1::2] == [0] * 10
    refused = [code == 1 and "[device-count]" in text for code, text in zip(codes[::2], said[::2], strict=True)]
    unasked = [code == 0 and "let in unchecked" in text for code, text in zip(codes[::2], said[::2], strict=True)]
    assert all(map(operator.or_, refused, unasked)), said[::2]
    assert any(refused)  # a slow machine uses up the time that questions in a row may take
