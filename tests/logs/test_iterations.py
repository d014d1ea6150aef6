"""How fast a run was, by its iteration lines."""

from __future__ import annotations

import io

import pytest

from preflight.logs.iterations import iterations

MEGATRON = (
    " [2026-10-18 01:36:06] iteration {n:8d}/ 100 | consumed samples: 64 | elapsed time per iteration (ms): {ms:.1f} |"
    " throughput per GPU (TFLOP/s/GPU): 400.1 | global batch size:    64 | lm loss: 1.0E+01 |"
)
MINDFORMERS = (
    "2026-10-18 01:36:06,000 - mindformers[core/callback.py:545] - INFO - {{ Epoch:[  1/  2], step:[{n:5d}/  100],"
    " loss: 10.643, per_step_time: {ms:.0f}ms, lr: 1e-06, loss_scale: 1.0, train_throughput_per_npu: 400.1T"
)
MINDSPEED = MEGATRON + " grad norm: 70.959 | max_memory_allocated(GB): 19.50 | max_memory_reserved(GB): 20.90 |"


@pytest.mark.parametrize(
    ("line", "memory", "allocated", "batch"),
    [
        (MEGATRON, "[Rank 3] (after 2 iterations) memory (MB) | allocated: 1.0 | max allocated: 19968.0 |", 19.5, 64),
        (MINDSPEED, "", 19.5, 64),
        (MINDFORMERS, "", None, None),
    ],
    ids=["Megatron-LM", "MindSpeed-LLM", "MindFormers"],
)
def test_lines_of_frameworks(line: str, memory: str, allocated: float | None, batch: int | None) -> None:
    steps = [line.format(n=n, ms=9000 if n < 2 else 3000 + n) for n in range(12)]
    found = iterations(io.BytesIO("\n".join([steps[0], memory, *steps[1:]]).encode()))
    assert found is not None
    assert (found.steps, found.batch, found.rate) == (12, batch, 400.1)
    assert 3.0 < found.seconds < 3.02 and found.spread < 0.01
    assert (found.allocated or 0) / 2**30 == pytest.approx(allocated or 0)


def test_a_log_of_a_run_that_died_tells_no_time() -> None:
    assert iterations(io.BytesIO(MEGATRON.format(n=1, ms=1.0).encode() * 2)) is None
