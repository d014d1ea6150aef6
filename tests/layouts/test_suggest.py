"""Layout fixes on findings: the smallest change first, each proven."""

from __future__ import annotations

import shlex

import pytest

from preflight.api import installed
from preflight.checking.checked_sources import Workspace
from preflight.fix.fixer import fix
from preflight.layouts.layout_fixes import suggest
from preflight.loaders.command_line import load_command
from preflight.run.request import Request, Target
from preflight.source.finding import Severity

MODEL = (
    "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
    "--max-position-embeddings 4096 --bf16 --lr 1e-4 --train-iters 10 --vocab-size 32000 "
    "--tokenizer-type NullTokenizer --mock-data --global-batch-size 64"
)


def workspace(options: str, world: int, **more: object) -> Workspace:
    request = Request(world_size=world, device="h100", target=Target("megatron", "0.20.0"), **more)  # type: ignore[arg-type]
    return Workspace([load_command(shlex.split(f"{MODEL} {options}")).source], installed(), request)


def titles(options: str, world: int, rule: str) -> list[str]:
    here = workspace(options, world, environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"})
    finding = next(f for f in suggest(here, here.check()).findings if f.rule == rule)
    return [
        found.title.removeprefix("change the layout: ")
        for found in (finding.fix, *finding.alternatives)
        if found is not None
    ]


@pytest.mark.slow
def test_sizes_that_do_not_divide_the_devices() -> None:
    got = titles("--micro-batch-size 1 --tensor-model-parallel-size 16 --use-distributed-optimizer", 8, "device-count")
    assert got[0] == "set --tensor-model-parallel-size 8" and got[1] == "set --tensor-model-parallel-size 4"
    assert len(got) <= 4


def test_an_uneven_split_for_layers_that_do_not_divide() -> None:
    got = titles(
        "--micro-batch-size 1 --num-layers 31 --pipeline-model-parallel-size 2 --use-distributed-optimizer",
        8,
        "megatron/layers-over-stages",
    )
    assert got[0] == "set --decoder-first-pipeline-num-layers 16"


def test_what_costs_no_speed_comes_before_other_layouts() -> None:
    got = titles("--micro-batch-size 4", 8, "predicted-oom")
    assert "--use-distributed-optimizer" in got[0] and not any("parallel-size" in word for word in got[0].split())


@pytest.mark.parametrize(
    "options, world",
    [
        ("--tensor-model-parallel-size 3", 8),
        ("--pipeline-model-parallel-size 5", 8),
        ("--context-parallel-size 3", 8),
        ("--num-attention-heads 30", 8),
    ],
)
def test_fixed_commands_are_clean_and_keep_the_global_batch(options: str, world: int) -> None:
    here = workspace(f"--micro-batch-size 1 --use-distributed-optimizer {options}", world)
    done = fix(here, unsafe=True, suggest=suggest, offered=True)
    assert not [f for f in done.report.findings if f.severity is Severity.ERROR]
    assert done.report.jobs[0].plan.batch.total.raw == 64 and done.report.jobs[0].plan.model.layers.raw == 32


@pytest.mark.parametrize("typed, taken", [(5, None), (16, 8)])
def test_of_several_sizes_that_fit_none_is_written_for_one_that_nobody_types(typed: int, taken: int | None) -> None:
    words = f"--micro-batch-size 1 --use-distributed-optimizer --tensor-model-parallel-size {typed}"
    here = workspace(f"{words} --global-batch-size 48", 24, environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"})
    done = fix(here, unsafe=True, suggest=suggest)
    text = done.edited["command line"].text if done.edited else ""
    assert (f"--tensor-model-parallel-size {taken}" in text) is (taken is not None)


def test_a_variable_that_is_missing_is_exported() -> None:
    here = workspace("--micro-batch-size 1 --use-distributed-optimizer --tensor-model-parallel-size 2", 8)
    done = fix(here, unsafe=True)
    assert done.edited["command line"].text.startswith("env CUDA_DEVICE_MAX_CONNECTIONS=1 pretrain_gpt.py")
