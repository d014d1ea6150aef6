"""What a measured step time means: tokens per second and device, model and hardware FLOPs utilisation."""

from __future__ import annotations

import re

from preflight.job import Job
from preflight.memory import flops
from preflight.memory.shape import Missing, shape
from preflight.source.text import InputError

_UNITS = {"ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0}


def seconds(text: str) -> float:
    """ "1.2s", "850ms" or "2min" in seconds. Raises InputError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|)\s*", text)
    if not found or float(found[1]) <= 0:
        raise InputError(f"{text!r} is no time; say 1.2s or 850ms")
    return float(found[1]) * _UNITS[found[2]]


def lines(job: Job, step: float | None) -> list[str]:
    """FLOPs per step, and with a step time the throughput and utilisation it means."""
    try:
        numbers = shape(job.plan)
    except Missing as missing:
        return [f"flops       not known: {missing}"]
    work = flops.step(numbers)
    found = [f"flops       {work.model:.3g} a step by the model, {work.hardware:.3g} with recomputation"]
    if step is None:
        return found
    device = job.cluster.device
    if device is None or not device.flops:
        return [*found, "utilisation not known: name a device with --device"]
    used = flops.utilisation(numbers, step, device.flops)
    text = (
        f"throughput  {used.tokens:,.0f} tokens/s/device, MFU {used.mfu:.1%}, "
        f"HFU {used.hfu:.1%} of {device.flops / 1e12:.0f} TFLOP/s"
    )
    return [*found, text]
