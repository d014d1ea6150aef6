"""Ranges come from residuals: poorly measured cases have wider ranges with a reason, and narrow with a measured run."""

from __future__ import annotations

import json

import pytest
from test_step_time import EXPERTS, step

from preflight import schemas
from preflight.steptime.error_ranges import MEASURED, NETWORK, STATED, causes, measured_range


def test_the_file_says_how_it_is_made_and_every_range_holds_its_estimate():
    table = schemas.read("step_time_ranges")
    assert "benchmarks/step_ranges.py" in table["command"] and table["promised"] == 0.9
    assert all(row.low <= 1.0 <= row.high and row.runs >= 8 for row in causes().values())


def test_experts_are_wider_than_dense_models_and_are_named():
    dense, routed = step(), step(*EXPERTS.split(), "--expert-model-parallel-size", "8")
    assert dense.because == "a dense model on hopper" and routed.because.startswith("experts on hopper")
    assert routed.high / routed.low > dense.high / dense.low


def test_a_device_that_no_run_was_measured_on_has_the_range_of_all():
    assert measured_range(("experts on ampere",), False)[:2] == (causes()["experts"].low, causes()["experts"].high)


def test_on_an_a100_the_low_end_is_that_of_a_good_network():
    found = step("--use-distributed-optimizer", device="a100", world=256, batch=256)
    assert found.because == NETWORK and found.low / found.seconds < causes()["a dense model on ampere"].low


def test_a_measured_run_decides_alone():
    found = measured_range(("experts on ascend under PyTorch", "context parallelism"), True)
    assert found.because == MEASURED and found.low == pytest.approx(causes()[MEASURED].low)


SCRIPT = (
    "torchrun --nnodes 32 --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048"
    " --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1"
    " --global-batch-size 256 --train-iters 10 --lr 1e-4 --bf16 --vocab-size 50257 --tokenizer-type NullTokenizer\n"
)


def shown(real_cli, *words: str) -> tuple[float, float, float, str]:
    ran = real_cli("show", "run.sh", "--device", "a100", "-f", "json", *words)
    step = json.loads(ran.out)["runs"][0]["step_time"]
    return step["seconds"], step["low"], step["high"], step["because"]


def test_a_stated_network_replaces_the_shared_one_and_a_slower_one_takes_longer(tmp_path, real_cli):
    (tmp_path / "run.sh").write_text(SCRIPT)
    shared, hdr, slow = shown(real_cli), shown(real_cli, "--network", "HDR"), shown(real_cli, "--network", "5")
    assert shared[3] == NETWORK and hdr[3].endswith(STATED)
    assert hdr[0] < shared[0] < slow[2] and hdr[0] < slow[0]
    (tmp_path / "preflight.toml").write_text('[cluster]\nnetwork = "ib-hdr"\n')
    assert shown(real_cli) == hdr
    (tmp_path / "preflight.toml").write_text("[cluster]\nnetwork = 25\n")
    assert shown(real_cli) == hdr


def test_a_network_that_nobody_knows_is_refused(tmp_path, real_cli):
    (tmp_path / "run.sh").write_text(SCRIPT)
    for word in ("NDX", "0", "-3", "nan", "inf"):
        ran = real_cli("show", "run.sh", "--network", word)
        assert ran.code == 2 and f"'{word}' is neither a network nor a number of GB/s" in ran.err, ran
