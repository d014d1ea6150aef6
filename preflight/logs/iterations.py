"""The speed and memory of a run that trained, from the iteration lines of Megatron, MindSpeed and MindFormers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from preflight.logs.relevant_lines import Reads, whole_lines
from preflight.source.record import NamedTuple

TIME = re.compile(
    rb"elapsed time per iteration \((ms|s)\): ([\d.]+)"
    rb"|per_step_time: ?([\d.]+) ?ms"
)
MEMORY = re.compile(
    rb"max allocated: ?([\d.]+)"
    rb"|[Uu]sed peak memory usage ?\(without fragments\)[: ]+([\d.]+) ?M"
    rb"|peak memory usage \(without fragments\): ([\d.]+)"
)
GIGABYTES = re.compile(rb"max_memory_allocated\(GB\): ?([\d.]+)")
BATCH = re.compile(rb"global batch size: +(\d+)")
RATE = re.compile(
    rb"(?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPs?(?: per GPU)?|train_throughput_per_npu)[:\s]+([\d.]+)"
)
MARKERS = (b"elapsed time per iteration", b"per_step_time", b"max allocated", b"without fragments")
WARM = 2
"""First steps that are skipped, because they compile, tune and allocate."""
LEAST = 3
"""The minimum number of steps after the first ones."""
MIB = 1 << 20


class Iterations(NamedTuple):
    """The steps of a run in its log. seconds: of the median step in steady state; spread: the middle half of the steps,
    relative to it; allocated: bytes at the peak of the fullest rank, None if not printed; batch: the global batch size;
    rate: TFLOP/s per device."""

    steps: int
    seconds: float
    spread: float
    allocated: float | None
    batch: int | None
    rate: float | None


def iterations(file: Reads) -> Iterations | None:
    """The values in the iteration lines of a log; None if there are too few. Raises OSError."""
    times: list[float] = []
    batches: list[int] = []
    rates: list[float] = []
    allocated = 0.0
    for line in _lines(file):
        if found := TIME.search(line):
            unit, value, *milliseconds = found.groups()
            times.append(
                float(value) / (1000 if unit == b"ms" else 1)
                if value
                else float(next(filter(None, milliseconds))) / 1000
            )
            if size := BATCH.search(line):
                batches.append(int(size[1]))
            if rate := RATE.search(line):
                rates.append(float(rate[1]))
            if held := GIGABYTES.search(line):
                allocated = max(allocated, float(held[1]) * 1024 * MIB)
        elif held := MEMORY.search(line):
            allocated = max(allocated, float(next(filter(None, held.groups()))) * MIB)
    steady = times[WARM:]
    if len(steady) < LEAST:
        return None
    middle = median(steady)
    inner = sorted(steady)[len(steady) // 4 : -(len(steady) // 4) or None]
    spread = (inner[-1] - inner[0]) / middle if middle else 0.0
    last = batches[-1] if batches else None
    return Iterations(
        len(times), middle, spread, allocated or None, last, median(rates[WARM:]) if rates[WARM:] else None
    )


def _lines(file: Reads) -> Iterator[bytes]:
    """The lines of a log that have a marker."""
    for block in whole_lines(file):
        places = []
        for marker in MARKERS:
            at = block.find(marker)
            while at >= 0:
                places.append(at)
                at = block.find(marker, block.find(b"\n", at) if b"\n" in block[at : at + 4096] else at + 4096)
        for start in dict.fromkeys(block.rfind(b"\n", 0, at) + 1 for at in sorted(places)):
            end = block.find(b"\n", start)
            yield block[start : end if end >= 0 else None]
