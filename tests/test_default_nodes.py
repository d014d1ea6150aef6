"""A number of nodes that is only a default or stated by the caller: faults that disappear with another number are not
errors."""

from __future__ import annotations

import pytest
from small_gpt import SIZES

import preflight
from preflight.source.finding import Finding, Severity

SIXTEEN = "pretrain_gpt.py --tensor-model-parallel-size 16 --num-layers 2 --hidden-size 1024 --num-attention-heads 8"


def said(script: str, **more: int) -> dict[str, Finding]:
    checked = preflight.check_text(script, name="run.sh", target="megatron@0.20.0", **more)
    return {finding.rule: finding for finding in checked.findings}


@pytest.mark.parametrize(
    "script",
    [
        "torchrun --nnodes ${NNODES:-1} --nproc-per-node 8",
        "NUM_NODES=${NUM_NODES:-1}\ntorchrun --nnodes $NUM_NODES --nproc-per-node ${GPUS:-8}",
        'NODES="${PET_NNODES:-${SLURM_NNODES:-1}}"\ntorchrun --nnodes $NODES --nproc-per-node 8',
        "NNODES=${1:-1}\ntorchrun --nnodes $NNODES --nproc-per-node 8",
    ],
)
def test_a_default_number_of_nodes_makes_no_error_of_what_other_nodes_mend(script: str) -> None:
    found = said(f"{script} {SIXTEEN}")
    assert found["device-count"].severity is Severity.WARNING
    assert "assumes the script's default" in found["device-count"].message
    assert found["heads-not-divisible"].severity is Severity.ERROR
    assert "default" not in found["heads-not-divisible"].message


@pytest.mark.parametrize(
    "nodes",
    [
        'NNODES=${WORLD_SIZE:-1}\nGPUS=${GPUS:-8}\nARGS="--nnodes $NNODES --nproc-per-node $GPUS"\n',
        'NNODES=${NNODES:-1}\nARGS="--nproc-per-node 8 --nnodes $NNODES"\n',
    ],
)
def test_a_default_is_seen_through_a_command_in_a_text(nodes: str) -> None:
    found = said(f'{nodes}RUN="torchrun $ARGS {SIXTEEN}"\neval $RUN')
    assert found["device-count"].severity is Severity.WARNING
    stated = nodes.replace("${WORLD_SIZE:-1}", "1").replace("${NNODES:-1}", "1")
    assert said(f'{stated}RUN="torchrun $ARGS {SIXTEEN}"\neval $RUN')["device-count"].severity is Severity.ERROR


@pytest.mark.parametrize(
    "script", ["torchrun --nproc-per-node 8", "NNODES=1\ntorchrun --nnodes $NNODES --nproc-per-node ${GPUS:-8}"]
)
def test_a_stated_number_of_nodes_is_taken_at_its_word(script: str) -> None:
    assert said(f"{script} {SIXTEEN}")["device-count"].severity is Severity.ERROR


def test_a_caller_who_says_the_devices_is_believed() -> None:
    script = f"torchrun --nnodes ${{NNODES:-1}} --nproc-per-node 8 {SIXTEEN}"
    assert said(script, world_size=24)["device-count"].severity is Severity.ERROR
    assert "device-count" not in said(script, world_size=32)


def test_what_no_number_of_nodes_cures_stays_an_error() -> None:
    script = f"torchrun --nnodes ${{NNODES:-1}} --nproc-per-node 8 pretrain_gpt.py {SIZES} --global-batch-size"
    assert said(f"{script} 12")["batch-not-divisible"].severity is Severity.ERROR
    assert "batch-not-divisible" not in said(f"{script} 16")
    many = f"torchrun --nnodes ${{NNODES:-3}} --nproc-per-node 8 pretrain_gpt.py {SIZES} --global-batch-size 32"
    assert said(many)["batch-not-divisible"].severity is Severity.ERROR
