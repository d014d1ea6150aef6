"""The shipped examples: the faulty ones have their faults, the sound one has none."""

from __future__ import annotations

from pathlib import Path

import pytest

import preflight

EXAMPLES = Path(__file__).parent.parent / "examples"
# fmt: off
EXPECTED = {
    "mindformers/run_llama2_7b.yaml": {"bad-offset", "too-few-micro-batches", "select-recompute-no-match",
        "class-argument-refused"},
    "megatron/model_config.yaml": {
        "batch-not-divisible",
        "megatron/layers-over-stages",
        "megatron/positions-below-sequence",
        "megatron/query-groups-over-tensor",
        "megatron/recompute-full-without-method",
    },
    "mindspeed/pretrain_7b_2d.sh": {"mindspeed/tp-2d-sequence-parallel", "mindspeed/tp-2d-sizes",
        "mindspeed/overlap-flags-exclusive", "batch-not-divisible"},
    "megatron/train_8b_faults.sh": {"device-count", "not-exported", "bad-choice",
        "undefined-option-variable", "lost-continuation"},
}
# fmt: on
WORLD = {"mindformers/run_llama2_7b.yaml": 16, "megatron/model_config.yaml": 32}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_faults_are_found(name: str) -> None:
    report = preflight.check(EXAMPLES / name, world_size=WORLD.get(name))
    assert EXPECTED[name] <= {finding.rule for finding in report.findings}
    assert not report.accepted


def test_the_sound_example_is_sound() -> None:
    report = preflight.check(EXAMPLES / "megatron" / "sound_8b.yaml", world_size=32, device="h100")
    assert (report.findings, report.accepted, report.fits) == ((), True, True)
