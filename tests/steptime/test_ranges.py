"""Ranges come from residuals: what is measured less well is wider, says why, and narrows with a measured run."""

from __future__ import annotations

import pytest
from test_step_time import EXPERTS, step

from preflight import schemas
from preflight.steptime.ranges import MEASURED, NETWORK, causes, measured_range


def test_the_file_says_how_it_is_made_and_every_range_holds_its_estimate():
    table = schemas.read("step_time_ranges")
    assert "benchmarks/step_ranges.py" in table["command"] and table["promised"] == 0.9
    assert all(row.low <= 1.0 <= row.high and row.runs >= 8 for row in causes().values())


def test_experts_are_wider_than_dense_models_and_are_named():
    dense, routed = step(), step(*EXPERTS.split(), "--expert-model-parallel-size", "8")
    assert dense.because == "a dense model on hopper" and routed.because == "experts on hopper"
    assert routed.high / routed.low > dense.high / dense.low


def test_heads_that_matrix_units_do_not_take_raise_the_high_end():
    odd = measured_range(("a dense model on hopper", "heads of a size that is not a multiple of 8"), False)
    plain = measured_range(("a dense model on hopper",), False)
    assert odd.high > plain.high and odd.low <= plain.low and "multiple of 8" in odd.because


def test_a_device_that_no_run_was_measured_on_has_the_range_of_all():
    assert measured_range(("experts on ampere",), False)[:2] == (causes()["experts"].low, causes()["experts"].high)


def test_on_an_a100_the_low_end_is_that_of_a_good_network():
    found = step("--use-distributed-optimizer", device="a100", world=256, batch=256)
    assert found.because == NETWORK and found.low / found.seconds < causes()["a dense model on ampere"].low


def test_a_measured_run_decides_alone():
    found = measured_range(("experts on ascend under PyTorch", "context parallelism"), True)
    assert found.because == MEASURED and found.low == pytest.approx(causes()[MEASURED].low)
