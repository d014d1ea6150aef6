"""Variables that a script uses only if they are set, those that a platform sets, and those that no process reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import write

import preflight

SIZES = (
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 "
    "--micro-batch-size 1 --global-batch-size 64 --pipeline-model-parallel-size 4"
)
LAUNCH = f"torchrun --nproc_per_node 8 pretrain_gpt.py {SIZES} $more\n"
USE = "--num-layers-per-virtual-pipeline-stage $VP"


def rules(script: str) -> list[str]:
    return [finding.rule for finding in preflight.check_text(script, name="run.sh").findings]


@pytest.mark.parametrize(
    "script",
    [
        f'if [ -z ${{VP}} ]; then more=""; else more="{USE}"; fi',
        f'if [ -z "$VP" ]; then\n  more=""\nelse\n  more=" \\\n    {USE}"\nfi',
        f'if [ -n "$VP" ]; then more="{USE}"; fi',
        f'if [[ ! -z $VP ]]; then more="{USE}"; else more=; fi',
        f'more=""\n[ -n "$VP" ] && more="{USE}"',
        f'[[ -z "$VP" ]] || more="{USE}"',
        f'if [ "$VP" -gt 1 ]; then more="{USE}"; fi',
        f'if [[ "$VP" != "" ]]; then more="{USE}"; fi',
        f'if test -n "$VP"; then more="{USE}"; fi',
        f'if [ "$A" = 1 ]; then more=; elif [ -n "$VP" ]; then more="{USE}"; fi',
        f"more=${{VP:+{USE}}}",
        f'if [[ -v VP ]]; then more="{USE}"; fi',
        f'case "$VP" in\n  "") more="" ;;\n  *) more="{USE}" ;;\nesac',
    ],
)
def test_a_use_behind_a_test_of_the_variable_is_meant(script: str) -> None:
    assert "unset-variable" not in rules(f"{script}\n{LAUNCH}")


@pytest.mark.parametrize(
    "script",
    [
        f'more="{USE}"',
        f'if [ "$INTERLEAVED" = 1 ]; then more="{USE}"; fi',
        f'if [ -z "$VP" ]; then echo none; fi\nmore="{USE}"',
        f'if [ -n "$VP_SIZE" ]; then more="{USE}"; fi',
        f'[ -n "$OTHER" ] && more="{USE}"',
        f"more=${{OTHER:+{USE}}}",
    ],
)
def test_a_use_behind_another_test_is_told(script: str) -> None:
    assert "unset-variable" in rules(f"{script}\n{LAUNCH}")


@pytest.mark.parametrize(
    "name",
    [
        "KUBERNETES_CONTAINER_RESOURCE_GPU",
        "MLP_WORKER_GPU",
        "ARNOLD_WORKER_GPU",
        "PBS_NGPUS",
        "LSB_DJOB_NUMPROC",
        "SLURM_GPUS_ON_NODE",
        "MA_NUM_GPUS",
        "PET_NPROC_PER_NODE",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "VC_WORKER_NUM",
    ],
)
def test_a_platform_sets_its_own_variables(name: str) -> None:
    assert "unset-variable" not in rules(LAUNCH.replace("_node 8", f"_node ${name}").replace(" $more", ""))


@pytest.mark.parametrize(
    "line",
    [
        "PYTORCH_IMAGE=nvcr.io/nvidia/pytorch:24.06-py3",
        "PYTORCH_VERSION=2.8.0",
        "TORCH_VERSION=2.8",
        "CUDA_VERSION=12.4",
        "NCCL_VERSION=2.21.5",
        "NVTE_TAG=v2.1",
        "NCCL_REPO=https://github.com/NVIDIA/nccl",
        "ASCEND_CONTAINER=train",
        "TORCH_BRANCH=main",
        'NCCL_ARGS="-x NCCL_DEBUG=INFO"',
    ],
)
def test_what_a_script_installs_or_starts_needs_no_export(line: str) -> None:
    assert "not-exported" not in rules(f"{line}\n{LAUNCH}")


@pytest.mark.parametrize("name", ["CUDA_DEVICE_MAX_CONNECTIONS", "NCCL_DEBUG", "OMP_NUM_THREADS"])
def test_what_a_process_reads_is_told(name: str) -> None:
    assert "not-exported" in rules(f"{name}=1\n{LAUNCH}")


@pytest.mark.parametrize(
    "script",
    [
        'if [[ -z $MODEL ]]; then\n  echo "set MODEL"\n  exit 1\nfi',
        'if [ -z "$MODEL" ]; then exit 2; fi',
        'if [ -z ${MODEL} ]; then echo "usage"; exit 1; fi',
        'if [ "$MODEL" = "" ]; then exit 1; fi',
        'if [[ "$MODEL" == "" ]]; then exit 1; fi',
        'if [ -z "$MODEL" ]; then exit 1; else echo "$MODEL"; fi',
        'if [ -z "$DATA" ] || [ -z "$MODEL" ]; then exit 1; fi',
        'if test -z "$MODEL"; then exit 1; fi',
        "if [[ ! -v MODEL ]]; then exit 1; fi",
        'for f in a; do :; done\nif [ -z "$MODEL" ]; then printf "no model"; exit 64; fi',
    ],
)
def test_a_script_that_ends_without_a_variable_has_it(script: str) -> None:
    assert "unset-variable" not in rules(f"{script}\n{LAUNCH.replace('$more', '--load $MODEL')}")


@pytest.mark.parametrize(
    "script",
    [
        'if [[ -z $MODEL ]]; then echo "set MODEL"; fi',
        "if [[ -z $OTHER ]]; then exit 1; fi",
        "if [[ -z $MODEL ]]; then exit 0; fi",
    ],
)
def test_a_script_that_goes_on_may_lack_it(script: str) -> None:
    assert "unset-variable" in rules(f"{script}\n{LAUNCH.replace('$more', '--load $MODEL')}")


TABLE = 'declare -A layers=(\n  ["small"]=12\n  ["large"]=48\n)\n'


@pytest.mark.parametrize(
    ("before", "word", "fault"),
    [
        ("size=$1\n", "${layers[$size]}", False),
        ("size=$1\n", '"${layers[$size]}"', False),
        ("size=$1\n", "${layers[${size}]}", False),
        ("", "${layers[$SIZE]}", False),
        ("", "${layers[$1]}", False),
        ("size=$(cat size)\n", "${layers[$size]}", False),
        ("read size\n", "${layers[$size]}", False),
        ("size=small\n", "${layers[$size]}", False),
        ("", "${layers[large]}", False),
        ("size=medium\n", "${layers[$size]}", True),
        ("", "${layers[medium]}", True),
    ],
)
def test_a_table_is_read_by_the_name_that_is_known(before: str, word: str, fault: bool) -> None:
    launch = LAUNCH.replace("--num-layers 32", f"--num-layers {word}").replace(" $more", "")
    assert ("missing-value" in rules(TABLE + before + launch)) is fault


@pytest.mark.parametrize(
    ("sourced", "start", "told"),
    [
        ("source data_sets.sh", "./launch.sh $CMD", False),
        ("source data_sets.sh", "bash launch.sh $CMD", False),
        (". ./data_sets.sh", "srun ./launch.sh $CMD", False),
        ("source /scratch/data_sets.sh", "srun singularity exec x.sif ./launch.sh $CMD", False),
        ('source "$HOME/data_sets.sh"', "bash launch.sh $CMD", False),
        ("source data_sets.sh", "mpirun -np 8 ./launch.sh $CMD", False),
        ("source data_sets.sh; set -u", "./launch.sh $CMD", False),
        ("source data_sets.sh", "sh launch.sh $CMD", False),
        ("", "./launch.sh $CMD", True),
        ("source /opt/conda/bin/activate base", "./launch.sh $CMD", True),
        ("source present.sh", "./launch.sh $CMD", True),
    ],
)
def test_a_file_that_is_not_here_may_set_what_another_script_gets(
    tmp_path: Path, sourced: str, start: str, told: bool
) -> None:
    command = f'CMD="pretrain_gpt.py {SIZES} --train-data-path $TRAIN_DATA"'
    files = {
        "run.sh": f"{sourced}\n{command}\n{start}\n",
        "launch.sh": 'python -u "$@"\n',
        "present.sh": "OTHER=1\n",
    }
    write(tmp_path, files)
    found = {finding.rule for finding in preflight.check(tmp_path / "run.sh").findings}
    assert ("unset-variable" in found) is told


RENDEZVOUS = "--nnodes $NNODES --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT"


@pytest.mark.parametrize(
    ("launcher", "told"),
    [
        (f"torchrun --nproc_per_node $GPUS_PER_NODE {RENDEZVOUS}", False),
        (f"torchrun --nproc-per-node $NPROC {RENDEZVOUS.replace('_', '-', 2)}", False),
        (f"torchrun --nproc_per_node=$NUM_GPUS {RENDEZVOUS}", False),
        ("torchrun --nproc_per_node $NGPU --nnodes $SLURM_JOB_NUM_NODES --node_rank $SLURM_NODEID", False),
        ("torchrun --nproc_per_node $NGPU --rdzv_endpoint $MASTER_ADDR:29500 --nnodes $NNODES", False),
        (f"python -m torch.distributed.launch --nproc_per_node $NPUS {RENDEZVOUS}", False),
        ("mpirun -np $NHOSTS python", False),
        ("mpirun -np $NSLOTS python", False),
        ("mpirun -np $HOW_MANY python", True),
        ("torchrun --nproc_per_node $GPUS_PER_NODE", True),
        ("torchrun --nproc_per_node $GPUS_PER_NODE --nnodes 1", True),
        ("torchrun --nproc_per_node 8 --nnodes $NNODES --node_rank $MY_RANK", True),
    ],
)
def test_what_sets_the_nodes_of_a_launch_sets_the_number_of_its_processes(launcher: str, told: bool) -> None:
    assert ("unset-variable" in rules(f"{launcher} pretrain_gpt.py {SIZES}\n")) is told
