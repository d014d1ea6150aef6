"""FP8 as a dimension of the search: the recipe that a run's device and framework take, or why there is none."""

from __future__ import annotations

from collections.abc import Callable

from preflight.job import Job
from preflight.layouts.proof import Try
from preflight.run.cluster import Device
from preflight.run.sizes import Sizes
from preflight.source.finding import Edit, Finding, Severity
from preflight.source.record import NamedTuple

SCALED, CURRENT, DELAYED = "mxfp8", "tensorwise", "delayed"
"""Scales by blocks of 32 that the matrix units apply, of the tensor as it is, of the tensor as it was in earlier steps
(Transformer Engine: MXFP8BlockScaling, Float8CurrentScaling, DelayedScaling)."""
BLACKWELL = 10


class InFP8(NamedTuple):
    """The job with products in FP8 in its present layout, and the recipe; or why it stays as it is."""

    job: Job
    recipe: str = ""
    why: str = ""


def in_fp8(job: Job, edits_for: Callable[[Sizes], tuple[Edit, ...]], attempt: Try) -> InFP8:
    """The first recipe that the rules accept in the present layout."""
    device, now = job.cluster.device, job.plan.precision.fp8
    if device is None or not device.fp8:
        name = f"{device.name} does not compute in FP8" if device is not None else "no device is named (--device)"
        return InFP8(job, why=name)
    if now.known and now.raw:
        return InFP8(job, why=f"the run computes in FP8 already ({now.raw})")
    before = _errors(attempt(()))
    same = edits_for(job.sizes)
    why = f"{job.target} has no option for it"
    for recipe in _recipes(device):
        edits = edits_for(job.sizes._replace(fp8=recipe))
        tried = attempt(edits)
        if isinstance(tried, str):
            why = tried
            continue
        changed = tried[0]
        if new := sorted(_errors(tried) - before):
            why = f"rule {new[0][0]} refuses it"
        elif changed.plan.precision.fp8.known and changed.plan.precision.fp8.raw:
            return InFP8(changed, recipe)
        elif edits != same:
            why = "the layers of this run do not compute in FP8: their implementation knows none"
    return InFP8(job, why=why)


def _errors(tried: tuple[Job, tuple[Finding, ...]] | str) -> set[tuple[str, str]]:
    found = () if isinstance(tried, str) else tried[1]
    return {(finding.rule, finding.message) for finding in found if finding.severity is Severity.ERROR}


def _recipes(device: Device) -> tuple[str, ...]:
    """The best first: blocks where the matrix units scale them (Blackwell, and Ascend devices that compute in FP8)."""
    scaled = device.architecture >= BLACKWELL or device.vendor == "ascend"
    return (SCALED, CURRENT, DELAYED) if scaled else (CURRENT, DELAYED)
