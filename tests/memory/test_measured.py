"""A team's measurement, and buffers of the environment, are separate terms of the estimate."""

from __future__ import annotations

from dataclasses import replace

import pytest
from memory_plans import make

import preflight
from preflight.checking.configured_checker import Checker
from preflight.memory import estimate
from preflight.plugins.manager import load
from preflight.run.cluster import Cluster, Device
from preflight.run.settings_files import load as load_settings
from preflight.run.value import derived
from preflight.source.source_file import InputError, Source

GIB = 2**30
ARGS = (
    "pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
    "--max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --bf16 --lr 1e-4 --train-iters 10 "
    "--tokenizer-type NullTokenizer --vocab-size 32000"
)
ASCEND = Cluster(device=Device("910", 64e9, 60 * GIB, vendor="ascend"))


def test_a_measured_run_shifts_every_estimate(tmp_path):
    (tmp_path / "run.sh").write_text(f"python {ARGS}\n")
    (tmp_path / "preflight.toml").write_text(
        'device = "h100"\nworld-size = 8\n[measured]\nconfig = "run.sh"\npeak-gib = 20\n'
    )
    checker = Checker(load_settings(tmp_path / "preflight.toml"), load())
    report = checker.check_source(Source.read(tmp_path / "run.sh"))
    stage = report.jobs[0].memory.worst
    shown = next(term for term in stage.terms if term.name == "measured on this cluster")
    margin = next(term for term in stage.terms if term.name == "margin for estimation error")
    assert shown.low == shown.high > 0
    assert stage.required - margin.high == pytest.approx(20 * GIB)


def test_a_measured_run_that_cannot_be_estimated_is_an_input_error(tmp_path):
    (tmp_path / "run.sh").write_text("python pretrain_gpt.py --num-layers 8\n")
    (tmp_path / "preflight.toml").write_text('[measured]\nconfig = "run.sh"\npeak-gib = 20\n')
    checker = Checker(load_settings(tmp_path / "preflight.toml"), load())
    with pytest.raises(InputError, match="cannot estimate the measured run"):
        checker.request(None)


def buffers(cluster, **changes):
    stage = estimate(make(**changes), cluster).worst
    return next(term.high for term in stage.terms if term.name == "communication buffers")


def test_two_buffers_for_each_communicator():
    assert buffers(ASCEND) == 2 * 200 * 2**20
    assert buffers(replace(ASCEND, buffer=derived(400 * 2**20))) == 2 * 400 * 2**20
    assert buffers(ASCEND, layout__tensor=8) == 2 * 2 * 200 * 2**20


def test_the_environment_says_how_large_a_buffer_is():
    def size(env):
        report = preflight.check_command(ARGS.split(), world_size=8, device="910b", env=env, target="mindspeed")
        return next(term.high for term in report.jobs[0].memory.worst.terms if term.name == "communication buffers")

    assert size({"HCCL_BUFFSIZE": "400"}) == 2 * size({})
    assert size({"HCCL_BUFFSIZE": "many"}) == size({})
