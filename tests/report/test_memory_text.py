"""The text about a run's memory: the answer, its basis, possible savings."""

from __future__ import annotations

import json
from pathlib import Path

from harness import Cli

import preflight
from preflight.memory.advice import savings
from preflight.memory.result import term_names
from preflight.report.html import render
from preflight.report.memory import answer, memory_text
from preflight.run.cluster import Device, devices
from preflight.source.record import replace

SCRIPT = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
    "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size {micro} --global-batch-size 224 --bf16 "
    "--lr 1e-4 --train-iters 10 --vocab-size 32000 --use-distributed-optimizer --tensor-model-parallel-size 4\n"
)


def job(micro: object = 2, device: str = "h100") -> preflight.Job:
    found = preflight.check_text(SCRIPT.format(micro=micro), name="run.sh", device=device, target="megatron@0.20.0")
    return found.jobs[0]


def test_the_answer_comes_first() -> None:
    lines = memory_text(job()).splitlines()
    assert lines[1] == "  fits: 32.4–38.9 of 79.2 GiB on stage 0, H100; at least 40.2 GiB free"


def test_every_verdict_says_what_is_needed_of_what_there_is() -> None:
    risky = job(micro=7).memory
    assert answer(job(micro=7)) == (
        f"at-risk: {risky.low / 2**30:.1f} to {risky.worst.required / 2**30:.1f} of 79.2 GiB on stage 0, H100"
    )
    large = answer(job(micro=16))
    assert large.startswith("does-not-fit: at least ") and large.endswith(" GiB too much")
    assert answer(job("$1")).startswith("memory is unknown: the micro batch size is unknown ($1)")


def test_a_run_that_is_refused_gets_no_verdict() -> None:
    refused = answer(job(micro=3))
    assert refused.endswith("GiB, no verdict: the run is rejected (batch-not-divisible; `preflight check` shows why)")
    text = memory_text(job(micro=3))
    assert "fits" not in text and "of 79.15 GiB" not in text and "would reduce" not in text


def test_sizes_that_replace_typed_ones_give_no_verdict(real_cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(SCRIPT.format(micro=2).replace("torchrun --nproc_per_node 8", "python"))
    options = ("--world-size", "30", "--device", "h100", "--target", "megatron@0.20.0")
    for command in ("memory", "show"):
        shown = real_cli(command, str(script), *options).out
        assert "no verdict: the run is rejected (device-count" in shown and "fits" not in shown
    unasked = real_cli("memory", str(script), *options, "--select", "unknown-flag").out
    assert "\n  no verdict: 32 devices instead of 30, which is not a multiple of the layout\n" in unasked
    told = json.loads(real_cli("memory", str(script), *options, "--output-format", "json").out)["runs"][0]
    assert told["verdict"] == "unknown" and "rejected" in told["unknown"][-1]


def test_the_report_of_a_refused_run_promises_nothing(tmp_path: Path) -> None:
    report = preflight.check_text(SCRIPT.format(micro=3), name="run.sh", device="h100", target="megatron@0.20.0")
    assert not report.accepted and not report.fits
    page = render(report)
    assert "no verdict: the run is rejected" in page and ": fits<" not in page


def test_another_device_is_compared() -> None:
    h200 = next(device for device in devices() if device.name == "H200")
    assert "of 139.7 GiB on stage 0, H200; " in memory_text(job(), others=[h200]).splitlines()[2]


def test_what_is_saved_is_what_the_changed_run_needs_less() -> None:
    found = {saving.change: saving for saving in savings(job().plan, job().cluster)}
    half = found["a micro-batch size of 1 instead of 2"]
    smaller = job(micro=1)
    assert half.required == smaller.memory.worst.required  # type: ignore[union-attr]
    assert half.saved == job().memory.worst.required - half.required  # type: ignore[union-attr]


def test_what_is_counted_and_assumed_is_said(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(SCRIPT.format(micro=2).replace("--vocab-size 32000", "--own-option 1").replace("_gpt", "_own"))
    text = memory_text(preflight.check(script, device="h100", target="megatron@0.20.0").jobs[0])
    assert "\n    assumed: no additional options are assumed: the entry script defines additional options" in text


def test_what_has_no_formula_is_said_as_such() -> None:
    script = SCRIPT.format(micro=2).replace("--bf16", "--bf16 --cuda-graph-impl transformer_engine --te-rng-tracker")
    found = preflight.check_text(script, name="run.sh", device="h100", target="megatron@0.20.0").jobs[0]
    assert "\n    preflight has no memory formula for CUDA graphs\n" in memory_text(found)
    assert savings(found.plan, found.cluster)


MIXTURE = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
    "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --bf16 "
    "--lr 1e-4 --train-iters 10 --vocab-size 32000 --use-distributed-optimizer --pipeline-model-parallel-size 4 "
    "--num-experts 8 --expert-model-parallel-size 8\n"
)


def test_savings_are_of_the_run_that_is_shown() -> None:
    """Its devices are taken as the nearest number that the layout divides."""
    found = preflight.check_text(MIXTURE, name="run.sh", device="h100", target="megatron@0.20.0").jobs[0]
    assert found.memory.assumed and found.memory.worst is not None
    for saving in savings(found.plan, found.cluster):
        assert abs(saving.required + saving.saved - found.memory.worst.required) < 1


def test_what_stays_comes_before_what_is_alive_and_what_lies_beside() -> None:
    found = preflight.check_text(MIXTURE, name="run.sh", device="h100", target="megatron@0.20.0").jobs[0]
    names = term_names(found.memory.stages)
    assert names.index("optimizer states") < names.index("backward of one layer") < names.index("allocator slack")


def test_a_need_that_rounds_to_what_there_is_shows_more_digits() -> None:
    plain = job()
    worst = plain.memory.worst
    assert worst is not None
    device = Device("close", worst.required, worst.required - 20 * 2**20)
    said = answer(replace(plain, cluster=replace(plain.cluster, device=device)))
    needed, there = (float(word) for word in said.split() if word.count(".") == 1 and len(word.partition(".")[2]) == 2)
    assert needed > there
