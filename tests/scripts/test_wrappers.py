"""Wrappers in front of a launch: the launch is found, and its processes are counted only if known."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.loaders.command_line import load_commands
from preflight.loaders.document import Launch
from preflight.loaders.shell import load_script
from preflight.source.source_file import Source

OPTIONS = "--num-layers 2 --lr 1"
LAUNCH = f"torchrun --nproc_per_node 8 pretrain_gpt.py {OPTIONS}"
# fmt: off
WRAPPED = {
    (f'CMD="pretrain_gpt.py {OPTIONS}"\nsrun -N2 --ntasks-per-node=8 singularity exec '
        '--nv -B /x:/y "$IMAGE" ./launch.sh $CMD\n'): ["./launch.sh may start several"],
    f"srun ./wrap.sh python pretrain_gpt.py {OPTIONS}\n": ["./wrap.sh may start several"],
    f"export WORLD_SIZE=16\nsrun -N 2 --ntasks-per-node=8 $M/launch.sh pretrain_gpt.py {OPTIONS}\n": [16],
    f"export WORLD_SIZE=2\nsrun -N 2 --ntasks-per-node=1 ./launch.sh pretrain_gpt.py {OPTIONS}\n":
        ["./launch.sh may start several"],
    f"bash wrap.sh {LAUNCH}\n": [8],
    ('srun -N 2 --gpus-per-node 8 apptainer exec --nv a.sif bash -c "cd /x; torchrun --nnodes 2 '
        f'--nproc_per_node 8 pretrain_gpt.py {OPTIONS}"\n'): [16, 16],
    f"enroot exec $PID {LAUNCH}\n": [8],
    f'srun -N 2 enroot start --rw a bash -c "{LAUNCH}"\n': [8],
    f'ray job submit --address="http://x:8265" --runtime-env-json="$J" -- python3 pretrain_gpt.py {OPTIONS}\n':
        ["ray may start several"],
    f'ray job submit --address=http://x -- bash -c "{LAUNCH}"\n': [8],
    f'sbatch -N 2 --gpus-per-node=8 --wrap "srun torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py {OPTIONS}"\n':
        [16, 16],
    f"sbatch -N2 --wrap='{LAUNCH}'\n": [8],
    f"kubectl exec -it pod-0 -c train -- {LAUNCH}\n": [8],
    f'kubectl exec pod-0 -- bash -c "{LAUNCH}"\n': [8],
    f"nohup {LAUNCH} > log 2>&1 &\n": [8],
    f'for h in a b; do ssh $h "cd /x && {LAUNCH}" & done\n': [8],
    f"for h in a b; do ssh -p 22 root@$h {LAUNCH} & done\n": [8],
    f"ssh $HOST python pretrain_gpt.py {OPTIONS}\n": ["ssh may start several"],
    f"pdsh -f 64 -w $HOSTS {LAUNCH}\n": [8],
    f'tmux new-session -d -s x "{LAUNCH}"\n': [8],
    f'screen -dmS x bash -c "{LAUNCH}"\n': [8],
    f"${{PY}} -u -m torch.distributed.run --nproc-per-node=8 pretrain_gpt.py {OPTIONS}\n": [8],
    (f"launch() {{\n  local n=$1; shift\n  torchrun --nproc_per_node $n pretrain_gpt.py \"$@\"\n}}\n"
        f"launch 8 {OPTIONS}\n"): [8],
}
# fmt: on


def world(launch: Launch) -> list[object]:
    return [count.value if isinstance(count.value, int) else count.value.because for count in launch.world]


@pytest.mark.parametrize("script", WRAPPED)
def test_the_launch_behind_a_wrapper(script: str) -> None:
    launches = [document.launch for document in load_script(Source(script, "run.sh"))]
    for launch in launches:
        assert launch is not None
        assert launch.entry.text == "pretrain_gpt.py" and [word.text for word in launch.words] == OPTIONS.split()
        assert world(launch) == WRAPPED[script]


def test_a_script_that_is_given_a_command_is_read_where_it_can_be(tmp_path: Path) -> None:
    (tmp_path / "launch.sh").write_text('torchrun --nproc_per_node 4 "$@"\n')
    (tmp_path / "run.sh").write_text(f"bash launch.sh pretrain_gpt.py {OPTIONS}\n")
    (document,) = load_script(Source.read(tmp_path / "run.sh", "run.sh"))
    assert document.launch is not None and world(document.launch) == [4]


def test_a_script_that_a_job_wraps_is_read(tmp_path: Path) -> None:
    (tmp_path / "launch.sh").write_text(f"torchrun --nproc_per_node 4 pretrain_gpt.py {OPTIONS}\n")
    (tmp_path / "run.sh").write_text('sbatch -N1 --wrap "bash launch.sh"\n')
    (document,) = load_script(Source.read(tmp_path / "run.sh", "run.sh"))
    assert document.launch is not None and world(document.launch)[0] == 4


def test_a_job_that_is_submitted_asks_for_what_its_script_and_the_command_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job.sh").write_text(
        "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --gpus-per-node=8\n"
        f"srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 pretrain_gpt.py {OPTIONS}\n"
    )
    monkeypatch.chdir(tmp_path)
    for command, devices in (("sbatch job.sh", 16), ("sbatch -N 4 job.sh", 32)):
        (document,) = load_commands(Source(command, "command line"))
        assert document.launch is not None
        assert document.launch.entry.text == "pretrain_gpt.py" and world(document.launch) == [devices, devices]
