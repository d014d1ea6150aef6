"""Step time of a run, estimated or measured, with throughput and utilisation."""

from __future__ import annotations

import re

from preflight.job import Job
from preflight.memory import flops
from preflight.memory.inputs_from_plan import Missing, Shape, shape
from preflight.source.record import replace
from preflight.source.source_file import InputError
from preflight.source.typing_without_import import Any
from preflight.steptime import StepTimeEstimate, estimate
from preflight.steptime.error_ranges import narrows
from preflight.steptime.estimate import completed
from preflight.steptime.layout_and_plan_traits import traits
from preflight.steptime.operators import model_operations

_UNITS = {"ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0}
LARGEST = 4
"""Maximum number of terms of a step that are named; the others are combined."""


def _flop(work: float) -> str:
    """Operations with the prefix that leaves one to three digits before the point."""
    for prefix, size in (("Z", 1e21), ("E", 1e18), ("P", 1e15), ("T", 1e12)):
        if work >= size:
            return f"{work / size:.3g} {prefix}FLOP"
    return f"{work / 1e9:.3g} GFLOP"


def seconds(text: str) -> float:
    """ "1.2s", "850ms" or "2min" in seconds. Raises InputError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|)\s*", text)
    if not found or float(found[1]) <= 0:
        raise InputError(f"{text!r} is not a time; write 1.2s or 850ms")
    return float(found[1]) * _UNITS[found[2]]


def lines(job: Job, step: float | None) -> list[str]:
    """FLOPs per step, and the step time with its throughput and utilisation: as measured, otherwise as estimated."""
    found = estimate(job.plan, job.cluster)
    plan = completed(job.plan)[0]
    try:
        numbers = shape(plan)
    except Missing as missing:
        return [f"flops       unknown: {missing}"]
    samples = numbers.micro * numbers.count * numbers.data
    work = model_operations(numbers, traits(plan, numbers)) * samples
    told = [f"flops       {_flop(work)} per step (model FLOPs, causal attention)"]
    if step is not None:
        return [*told, *_measured(numbers, replace(found, seconds=None) if job.withheld else found, step, work)]
    if found.seconds is None or job.withheld:
        return [*told, f"step time   unknown: {job.withheld or '; '.join(found.unknown)}"]
    return [*told, *_estimated(found)]


def _measured(s: Shape, found: StepTimeEstimate, step: float, work: float) -> list[str]:
    """The throughput of a measured step, and the deviation of the estimate from it."""
    if not found.peak:
        return ["utilisation unknown: name a device with --device"]
    devices = s.data * s.tensor * s.pipeline * s.context
    tokens = s.sequence * s.micro * s.count * s.data / step / devices
    share = flops.step(s).hardware / flops.step(s).model
    use = work / (step * devices * found.peak)
    text = f"throughput  {tokens:,.0f} tokens/s/device, MFU {use:.1%}, HFU {use * share:.1%} of {_peak(found)}"
    if found.seconds is None:
        return [text]
    return [text, f"estimated   {_time(found.seconds)}, {found.seconds / step - 1:+.0%} relative to the measured step"]


def _estimated(found: StepTimeEstimate) -> list[str]:
    assert found.seconds is not None and found.low is not None and found.high is not None
    assert found.tokens is not None and found.mfu is not None
    span = f"{_time(found.low)} to {_time(found.high)}"
    more = "" if found.measured == 1.0 else f", divided by {found.measured:.2f} as measured"
    large = sorted(found.terms, key=lambda term: -term.seconds)[:LARGEST]
    rest = found.seconds - sum(term.seconds for term in large)
    parts = [f"{term.name} {term.seconds / found.seconds:.0%}" for term in large]
    parts += [f"other {rest / found.seconds:.0%}"] if rest > 0.005 * found.seconds else []
    return [
        f"step time   {_time(found.seconds)} estimated ({span}{more})",
        f"throughput  {found.tokens:,.0f} tokens/s/device, MFU {found.mfu:.1%} of {_peak(found)}",
        f"spent on    {', '.join(parts)}",
        *_width(found),
        *(f"assumed     {text}" for text in found.assumed),
    ]


def _width(found: StepTimeEstimate) -> list[str]:
    """The causes of the width of the range, and how to narrow it."""
    if found.seconds is None or found.low is None or found.high is None or not found.because:
        return []
    span = f"{found.low / found.seconds - 1:+.0%} to {found.high / found.seconds - 1:+.0%}"
    if found.measured != 1.0 or not narrows(found.low, found.high):
        return [f"range       {span}: {found.because}"]
    return [f"range       {span}: {found.because}; a measured step narrows it: step-seconds under [measured]"]


def _peak(found: StepTimeEstimate) -> str:
    return f"{found.peak / 1e12:,.0f} TFLOP/s, {found.precision}"


def _time(length: float) -> str:
    """Seconds, or milliseconds below one."""
    return f"{length:.3g} s" if length >= 1 else f"{length * 1000:.3g} ms"


def step_dict(job: Job) -> dict[str, Any]:
    """The estimate as data; seconds."""
    found = estimate(job.plan, job.cluster)
    if job.withheld:
        found = StepTimeEstimate(peak=found.peak, precision=found.precision, unknown=(job.withheld,))
    return {
        "seconds": found.seconds,
        "low": found.low,
        "high": found.high,
        "because": found.because or None,
        "tokens_per_second_and_device": found.tokens,
        "mfu": found.mfu,
        "peak": found.peak or None,
        "precision": found.precision if found.peak else None,
        "terms": {term.name: term.seconds for term in found.terms},
        "unknown": list(found.unknown),
        "assumed": list(found.assumed),
    }
